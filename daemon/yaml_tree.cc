// SPDX-License-Identifier: Apache-2.0
#include "daemon/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <string_view>
#include <unordered_map>

namespace popgate {

/// Takes yaml-cpp's events; throws YAML::ParserException at a bound, which parse() turns into its error.
class YamlBuilder : public YAML::EventHandler {
 public:
  explicit YamlBuilder(YamlTree& tree) : tree_(tree) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(mark, YamlKind::kNull, anchor); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, const std::string& value) override {
    if (value.size() > UINT32_MAX - tree_.text_.size()) throw YAML::ParserException(mark, "too much text");
    const std::uint32_t index = add(mark, YamlKind::kScalar, anchor);
    tree_.nodes_[index].text_offset = static_cast<std::uint32_t>(tree_.text_.size());
    tree_.nodes_[index].text_bytes = static_cast<std::uint32_t>(value.size());
    tree_.text_ += value;
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto target = anchors_.find(anchor);
    if (target == anchors_.end() || is_open(target->second))
      throw YAML::ParserException(mark, "an alias that contains itself");
    const std::uint32_t index = add(mark, YamlKind::kNull, 0);
    tree_.nodes_[index].alias = true;
    tree_.nodes_[index].first_child = target->second;
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open_.push_back({add(mark, YamlKind::kList, anchor), 0});
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open_.push_back({add(mark, YamlKind::kMap, anchor), 0});
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  struct Open {
    std::uint32_t index;
    std::uint32_t last_child;
  };

  [[nodiscard]] bool is_open(std::uint32_t index) const {
    for (const Open& open : open_) {
      if (open.index == index) return true;
    }
    return false;
  }

  std::uint32_t add(const YAML::Mark& mark, YamlKind kind, YAML::anchor_t anchor) {
    if (tree_.nodes_.size() >= kYamlNodesMax) throw YAML::ParserException(mark, "too many values");
    const auto index = static_cast<std::uint32_t>(tree_.nodes_.size());
    YamlTree::Node node;
    node.line = mark.line + 1;
    node.column = mark.column + 1;
    node.kind = kind;
    tree_.nodes_.push_back(node);
    if (anchor != 0) anchors_[anchor] = index;
    if (open_.empty()) return index;
    Open& parent = open_.back();
    (parent.last_child == 0 ? tree_.nodes_[parent.index].first_child : tree_.nodes_[parent.last_child].next) = index;
    parent.last_child = index;
    ++tree_.nodes_[parent.index].children;
    return index;
  }

  YamlTree& tree_;
  std::vector<Open> open_;
  std::unordered_map<YAML::anchor_t, std::uint32_t> anchors_;
};

namespace {

/// yaml-cpp names the state it was in; this says what one usually did.
std::string allowed_instead(const std::string& text, const YAML::Exception& problem) {
  const auto is = [&](const char* message) { return problem.msg.starts_with(message); };
  if (is(YAML::ErrorMsg::UNKNOWN_ANCHOR)) return "quotes around what begins with '*'";
  std::size_t line = 0;
  for (int i = 0; i < problem.mark.line; ++i) line = text.find('\n', line) + 1;  // 0 again when there are fewer
  const std::size_t word = std::min(text.find_first_not_of(" \t", line), text.size());
  if (std::string_view(text).substr(line, word - line).find('\t') != std::string_view::npos)
    return "spaces before the first word of a line, no tab";
  if (is(YAML::ErrorMsg::MAP_VALUE) || is(YAML::ErrorMsg::END_OF_MAP) || is(YAML::ErrorMsg::END_OF_SEQ) ||
      is(YAML::ErrorMsg::BLOCK_ENTRY))
    return "all fields of one map in one column, each with a space after its colon (look at the line before, too)";
  return "";
}

}  // namespace

bool YamlTree::parse(const std::string& text, YamlError& error) {
  nodes_.clear();
  text_.clear();
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    YamlBuilder builder(*this);
    parser.HandleNextDocument(builder);
    const std::size_t values = nodes_.size();
    YamlTree second;
    YamlBuilder rest(second);
    if (values != 0 && parser.HandleNextDocument(rest)) {
      error = {second.nodes_.empty() ? 1 : second.nodes_[0].line, 1, "a second document", "one"};
      return false;
    }
    if (values == 0) nodes_.push_back({.line = 1, .column = 1});
    return true;
  } catch (const YAML::Exception& problem) {
    error = {problem.mark.line + 1, problem.mark.column + 1, problem.msg, allowed_instead(text, problem)};
  } catch (const std::exception& problem) {
    error = {1, 1, problem.what(), ""};
  }
  return false;
}

YamlValue::YamlValue(const YamlTree* tree, std::uint32_t place) : tree_(tree), place_(place), content_(place) {
  // An alias to an alias is resolved by yaml-cpp to the same anchor; one step is enough.
  if (tree->nodes_[place].alias) content_ = tree->nodes_[place].first_child;
}

YamlKind YamlValue::kind() const { return tree_->nodes_[content_].kind; }

std::string_view YamlValue::text() const {
  const YamlTree::Node& node = tree_->nodes_[content_];
  return std::string_view(tree_->text_).substr(node.text_offset, node.text_bytes);
}

int YamlValue::line() const { return tree_->nodes_[place_].line; }
int YamlValue::column() const { return tree_->nodes_[place_].column; }

std::size_t YamlValue::count() const {
  const YamlTree::Node& node = tree_->nodes_[content_];
  return node.kind == YamlKind::kMap ? node.children / 2 : node.children;
}

YamlValue YamlValue::first() const {
  const std::uint32_t child = tree_->nodes_[content_].first_child;
  return child == 0 ? YamlValue() : YamlValue(tree_, child);
}

YamlValue YamlValue::next() const {
  const std::uint32_t next = tree_->nodes_[place_].next;
  return next == 0 ? YamlValue() : YamlValue(tree_, next);
}

}  // namespace popgate
