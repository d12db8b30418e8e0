// SPDX-License-Identifier: Apache-2.0
#include "daemon/config_section.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "daemon/duration.h"
#include "daemon/near_name.h"
#include "daemon/printable_text.h"
#include "daemon/result.h"

namespace popgate {
namespace {

constexpr std::size_t kFoundBytesMax = 80;

/// A whole number in decimal digits, without sign; false when it is none or does not fit.
bool parse_number(std::string_view text, std::int64_t& out) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return false;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
  return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

bool within(const Option& option, std::int64_t value) { return value >= option.least && value <= option.most; }

}  // namespace

std::string FieldPath::text() const {
  std::string text = parent == nullptr ? std::string() : parent->text();
  if (!text.empty() && !name.empty()) text += '.';
  text += name;
  if (index != kNoIndex) text += "[" + std::to_string(index) + "]";
  return text;
}

std::string found_text(const YamlValue& value) {
  if (!value.exists() || value.kind() == YamlKind::kNull) return "nothing";
  if (value.kind() == YamlKind::kList) return "a list of " + std::to_string(value.count());
  if (value.kind() == YamlKind::kMap) return "a map";
  return "\"" + escaped_controls(std::string_view(value.text()).substr(0, kFoundBytesMax)) +
         (value.text().size() > kFoundBytesMax ? "…\"" : "\"");
}

void FaultList::add(const YamlValue& at, std::string field, std::string found, std::string allowed) {
  if (full()) return;
  if (faults_.size() == kConfigFaultsMax) {
    faults_.push_back({file_, 0, 0, "", "more faults than are listed", ""});
    return;
  }
  const int line = at.exists() ? at.line() : 0;
  const int column = at.exists() ? at.column() : 0;
  faults_.push_back({file_, line, column, std::move(field), std::move(found), std::move(allowed)});
}

std::vector<ConfigFault> FaultList::take() {
  std::stable_sort(faults_.begin(), faults_.end(), [](const ConfigFault& a, const ConfigFault& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  return std::move(faults_);
}

OptionSections::OptionSections() {
  for (const Option& option : options()) {
    const std::size_t dot = option.name.rfind('.');
    const bool top = dot == std::string_view::npos;
    const std::string_view section = top ? std::string_view() : option.name.substr(0, dot);
    sections_[section].push_back({top ? option.name : option.name.substr(dot + 1), &option});
  }
}

const std::vector<OptionSections::Field>& OptionSections::of(std::string_view section) const {
  const auto found = sections_.find(section);
  POPGATE_ASSERT(found != sections_.end());
  return found->second;
}

Section::Section(const ConfigReading& reading, const FieldPath& path, const YamlValue& map, std::string_view section)
    : reading_(reading), path_(path), map_(map), fields_(reading.options.of(section)) {
  POPGATE_ASSERT(fields_.size() <= kFieldsMax);
  if (map.kind() != YamlKind::kMap) {
    fault(path_, map, "a map of fields");
    return;
  }
  for (YamlValue name = map.first(); name.exists(); name = name.next().next()) take_field(name);
}

void Section::take_field(const YamlValue& name) {
  const std::string_view leaf = name.text();
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (name.kind() != YamlKind::kScalar || fields_[i].leaf != leaf) continue;
    if (values_[i].exists()) return fault(FieldPath{&path_, leaf}, name, "each field once");
    values_[i] = name.next();
    return;
  }
  std::vector<std::string_view> known;
  for (const auto& field : fields_) known.push_back(field.leaf);
  std::string allowed;
  if (const std::string_view near = near_name(leaf, known); !near.empty()) {
    allowed = "did you mean " + std::string(near) + "?";
  } else {
    for (const std::string_view field : known) allowed += (allowed.empty() ? "" : ", ") + std::string(field);
  }
  // The name itself is what was found; it may be long or unprintable, so it does not stand in the path.
  reading_.faults.add(name, path_.text(), "the unknown field " + found_text(name), std::move(allowed));
}

std::size_t Section::field_index(std::string_view leaf) const {
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (fields_[i].leaf == leaf) return i;
  }
  POPGATE_ASSERT(false && "a field that is not in the table");
  return 0;
}

YamlValue Section::value(std::string_view leaf) const {
  const YamlValue& value = values_[field_index(leaf)];
  return value.exists() && value.kind() == YamlKind::kNull ? YamlValue() : value;
}

const Option& Section::option(std::string_view leaf) const { return *fields_[field_index(leaf)].option; }

void Section::fault(std::string_view leaf, std::string allowed) const {
  if (!has(leaf)) return fault_missing(leaf, std::move(allowed));
  fault(path(leaf), value(leaf), std::move(allowed));
}

void Section::fault(const FieldPath& field, const YamlValue& found, std::string allowed) const {
  if (reading_.faults.full()) return;
  reading_.faults.add(found, field.text(), found_text(found), std::move(allowed));
}

void Section::fault_missing(std::string_view leaf, std::string allowed) const {
  if (reading_.faults.full()) return;
  reading_.faults.add(map_, path(leaf).text(), "nothing", std::move(allowed));
}

bool Section::required_is_missing(std::string_view leaf) const {
  if (has(leaf)) return false;
  if (option(leaf).standard == kRequired && map_.kind() == YamlKind::kMap)
    fault_missing(leaf, allowed_text(option(leaf)));
  return true;
}

bool Section::read_scalar(std::string_view leaf, std::string_view& out) const {
  if (required_is_missing(leaf)) return false;
  const YamlValue found = value(leaf);
  if (found.kind() != YamlKind::kScalar) {
    fault(leaf, allowed_text(option(leaf)));
    return false;
  }
  out = found.text();
  return true;
}

bool Section::read(std::string_view leaf, std::string& out) const {
  std::string_view text;
  if (!read_scalar(leaf, text)) return false;
  const OptionKind kind = option(leaf).kind;
  const bool plain = text.find('\0') == std::string_view::npos && !text.empty();
  const bool right =
      plain && (kind != OptionKind::kName || is_plain_name(text)) && (kind != OptionKind::kPath || text.front() == '/');
  if (right) out = text;
  if (!right) fault(leaf, allowed_text(option(leaf)));
  return right;
}

bool Section::read(std::string_view leaf, std::uint64_t& out) const {
  std::string_view text;
  if (!read_scalar(leaf, text)) return false;
  std::int64_t number = 0;
  const bool right = parse_number(text, number) && within(option(leaf), number);
  if (right) out = static_cast<std::uint64_t>(number);
  if (!right) fault(leaf, allowed_text(option(leaf)));
  return right;
}

bool Section::read(std::string_view leaf, std::uint32_t& out) const {
  POPGATE_ASSERT(option(leaf).most <= INT32_MAX);
  std::uint64_t number = 0;
  if (!read(leaf, number)) return false;
  out = static_cast<std::uint32_t>(number);
  return true;
}

bool Section::read(std::string_view leaf, bool& out) const {
  static constexpr std::pair<std::string_view, bool> kWords[] = {{"true", true}, {"false", false}};
  return read_choice<bool>(leaf, kWords, out);
}

bool Section::read(std::string_view leaf, microseconds& out) const {
  std::string_view text;
  if (!read_scalar(leaf, text)) return false;
  // Zero is the one number that needs no unit, where zero is allowed.
  const auto duration = text == "0" ? microseconds(0) : parse_duration(text);
  const bool right = duration && within(option(leaf), duration->count());
  if (right) out = *duration;
  if (!right) fault(leaf, allowed_text(option(leaf)));
  return right;
}

bool Section::read(std::string_view leaf, milliseconds& out) const {
  microseconds exact{0};
  if (!read(leaf, exact)) return false;
  out = std::chrono::duration_cast<milliseconds>(exact);  // nothing is written in less than milliseconds
  return true;
}

bool Section::read(std::string_view leaf, Endpoint& out) const {
  std::string_view text;
  if (!read_scalar(leaf, text)) return false;
  auto endpoint = parse_endpoint(text);
  if (!endpoint) {
    fault(leaf, allowed_text(option(leaf)));
    return false;
  }
  out = *std::move(endpoint);
  return true;
}

bool Section::read_file(std::string_view leaf, std::string& out) const {
  std::string_view text;
  if (!read_scalar(leaf, text)) return false;
  if (text.empty() || text.find('\0') != std::string_view::npos) {
    fault(leaf, allowed_text(option(leaf)));
    return false;
  }
  const std::string& file = reading_.faults.file();
  const std::size_t slash = file.rfind('/');
  const bool beside = text.front() != '/' && slash != std::string::npos;
  out = (beside ? file.substr(0, slash + 1) : "") + std::string(text);
  return true;
}

bool Section::read_list(std::string_view leaf, std::vector<YamlValue>& out) const {
  if (required_is_missing(leaf)) return false;
  const YamlValue list = value(leaf);
  if (list.kind() != YamlKind::kList || !within(option(leaf), static_cast<std::int64_t>(list.count()))) {
    fault(leaf, allowed_text(option(leaf)));
    return false;
  }
  for (YamlValue entry = list.first(); entry.exists(); entry = entry.next()) out.push_back(entry);
  return true;
}

}  // namespace popgate
