// SPDX-License-Identifier: Apache-2.0
//
// A YAML document as a plain tree that remembers where everything stood.
//
// Built from yaml-cpp's parser events, not from YAML::Node: the file of a node with hundreds of thousands of rules has
// millions of values, and a YAML::Node takes hundreds of bytes and several allocations for each, where this takes 32
// bytes. It also keeps what YAML::Node loses: repeated fields, and the place of every field's name.
//
// Threads: const after parse(); values view into the tree and do not outlive it.
// Limits: kYamlNodesMax values; 500 levels (yaml-cpp's own); one document a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace popgate {

inline constexpr std::size_t kYamlNodesMax = std::size_t{1} << 25;  // 1 GiB of them

enum class YamlKind : std::uint8_t { kNull, kScalar, kList, kMap };

struct YamlError {
  int line = 0;  // from 1
  int column = 0;
  std::string text;
  std::string allowed;  // what to write instead; empty when nobody knows
};

class YamlTree;

/// One value. Of an alias (`*name`) it is the content of the anchor, at the place of the alias.
class YamlValue {
 public:
  YamlValue() = default;
  [[nodiscard]] bool exists() const { return tree_ != nullptr; }
  [[nodiscard]] YamlKind kind() const;
  [[nodiscard]] std::string_view text() const;  // of a scalar, else empty
  [[nodiscard]] int line() const;               // from 1
  [[nodiscard]] int column() const;             // from 1
  [[nodiscard]] std::size_t count() const;      // of a list's values or a map's fields
  /// The first value of a list, or the name of a map's first field; then next() in turn (of a field: its value).
  [[nodiscard]] YamlValue first() const;
  [[nodiscard]] YamlValue next() const;

 private:
  friend class YamlTree;
  YamlValue(const YamlTree* tree, std::uint32_t place);
  const YamlTree* tree_ = nullptr;
  std::uint32_t place_ = 0;
  std::uint32_t content_ = 0;
};

class YamlTree {
 public:
  /// False, with the first error, when the text is not one YAML document.
  [[nodiscard]] bool parse(const std::string& text, YamlError& error);
  /// A null when the document is empty.
  [[nodiscard]] YamlValue root() const { return {this, 0}; }

 private:
  friend class YamlValue;
  friend class YamlBuilder;
  struct Node {
    std::int32_t line = 0;
    std::int32_t column = 0;
    std::uint32_t text_offset = 0;
    std::uint32_t text_bytes = 0;
    std::uint32_t first_child = 0;  // 0: none; of an alias: its target
    std::uint32_t next = 0;
    std::uint32_t children = 0;
    YamlKind kind = YamlKind::kNull;
    bool alias = false;
  };
  std::vector<Node> nodes_;
  std::string text_;
};

}  // namespace popgate
