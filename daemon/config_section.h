// SPDX-License-Identifier: Apache-2.0
//
// Reads one map of the configuration file against the table of options, and notes everything that is wrong with it.
//
// A section knows its place in the file and its fields' options. Fields that are not in the table, or come twice, are
// faults as soon as the section is made; a field that is read and does not fit its option is a fault then. Reading goes
// on after every fault, so that all of them are reported in one go.
//
// Threads: values of one reading; nothing outlives the YamlTree.
// Limits: kConfigFaultsMax faults are kept; the one after says that there are more, and full() then.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/config.h"
#include "daemon/config_options.h"
#include "daemon/yaml_tree.h"

namespace popgate {

/// A field's place among the others: "rules[2].window". Parents live on the readers' stacks.
struct FieldPath {
  static constexpr std::size_t kNoIndex = static_cast<std::size_t>(-1);
  const FieldPath* parent = nullptr;
  std::string_view name;
  std::size_t index = kNoIndex;
  [[nodiscard]] std::string text() const;
};

/// What a value looks like in a message: a scalar in quotes, cut and made printable; else what it is.
[[nodiscard]] std::string found_text(const YamlValue& value);

class FaultList {
 public:
  explicit FaultList(std::string file) : file_(std::move(file)) {}

  /// `at` may not exist: then the fault is the file's as a whole.
  void add(const YamlValue& at, std::string field, std::string found, std::string allowed);
  [[nodiscard]] bool full() const { return faults_.size() > kConfigFaultsMax; }
  [[nodiscard]] bool empty() const { return faults_.empty(); }
  [[nodiscard]] const std::string& file() const { return file_; }
  /// In the order of the file.
  [[nodiscard]] std::vector<ConfigFault> take();

 private:
  std::string file_;
  std::vector<ConfigFault> faults_;
};

/// The options by section: "counters.shards[]" -> name, address, weight.
class OptionSections {
 public:
  struct Field {
    std::string_view leaf;
    const Option* option;
  };
  OptionSections();
  [[nodiscard]] const std::vector<Field>& of(std::string_view section) const;

 private:
  std::unordered_map<std::string_view, std::vector<Field>> sections_;
};

/// What every reader of a file shares.
struct ConfigReading {
  const OptionSections& options;
  FaultList& faults;
};

class Section {
 public:
  /// `section` names the options: "rules[].match". A `map` that is none is a fault, and the section empty.
  Section(const ConfigReading& reading, const FieldPath& path, const YamlValue& map, std::string_view section);

  [[nodiscard]] bool has(std::string_view leaf) const { return value(leaf).exists(); }
  /// True also for a field that is there and empty (`field:`).
  [[nodiscard]] bool names(std::string_view leaf) const { return values_[field_index(leaf)].exists(); }
  /// The field's value; one that does not exist when the file has none, or an empty one (`field:`).
  [[nodiscard]] YamlValue value(std::string_view leaf) const;
  [[nodiscard]] const Option& option(std::string_view leaf) const;
  [[nodiscard]] FieldPath path(std::string_view leaf) const { return {&path_, leaf}; }

  /// Each reads a field of its option's kind. True when it is there and right; otherwise `out` keeps its default, and a
  /// value that is wrong, or missing though required, is a fault.
  [[nodiscard]] bool read(std::string_view leaf, std::string& out) const;
  [[nodiscard]] bool read(std::string_view leaf, std::uint64_t& out) const;
  [[nodiscard]] bool read(std::string_view leaf, std::uint32_t& out) const;
  [[nodiscard]] bool read(std::string_view leaf, bool& out) const;
  [[nodiscard]] bool read(std::string_view leaf, microseconds& out) const;
  [[nodiscard]] bool read(std::string_view leaf, milliseconds& out) const;
  [[nodiscard]] bool read(std::string_view leaf, Endpoint& out) const;
  template <typename Choice>
  [[nodiscard]] bool read_choice(std::string_view leaf, std::span<const std::pair<std::string_view, Choice>> words,
                                 Choice& out) const {
    std::string_view text;
    if (!read_scalar(leaf, text)) return false;
    for (const auto& [word, choice] : words) {
      if (word != text) continue;
      out = choice;
      return true;
    }
    fault(leaf, allowed_text(option(leaf)));
    return false;
  }

  /// The text of a field that must be one; everything else about it is the caller's to check.
  [[nodiscard]] bool read_scalar(std::string_view leaf, std::string_view& out) const;
  /// A file's path; a relative one is made to start at the folder of the file that is read.
  [[nodiscard]] bool read_file(std::string_view leaf, std::string& out) const;
  /// The entries of a list within its option's bounds.
  [[nodiscard]] bool read_list(std::string_view leaf, std::vector<YamlValue>& out) const;

  /// The field's value is wrong.
  void fault(std::string_view leaf, std::string allowed) const;
  void fault(const FieldPath& field, const YamlValue& found, std::string allowed) const;
  /// A fault of the section as a whole, about a field that may be missing.
  void fault_missing(std::string_view leaf, std::string allowed) const;

  [[nodiscard]] const ConfigReading& reading() const { return reading_; }

 private:
  static constexpr std::size_t kFieldsMax = 24;
  void take_field(const YamlValue& name);
  [[nodiscard]] std::size_t field_index(std::string_view leaf) const;
  [[nodiscard]] bool required_is_missing(std::string_view leaf) const;

  const ConfigReading& reading_;
  const FieldPath& path_;
  YamlValue map_;
  const std::vector<OptionSections::Field>& fields_;
  std::array<YamlValue, kFieldsMax> values_;
};

}  // namespace popgate
