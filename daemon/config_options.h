// SPDX-License-Identifier: Apache-2.0
//
// The table of every option of the configuration file: name, type, default, unit, range, meaning.
//
// The readers take ranges and known names from it, the errors their "allowed", `popgated --print-options` and the
// manual (docs/configuration.md) their table.
//
// Threads: constants.
// Invariants: 1. A default in the table is the default of the Config (a test compares them).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace popgate {

enum class OptionKind : std::uint8_t {
  kSection,   // a map of further options
  kList,      // of what `unit` says; least to most entries
  kName,      // a name of the project's own form (is_plain_name)
  kText,      // `range` says which
  kPath,      // absolute
  kFile,      // a path, absolute or from the folder of the configuration file
  kInteger,   // least to most
  kDuration,  // least to most, in microseconds
  kChoice,    // one of the words in `range`
  kMode,      // octal permission bits
  kEndpoint,  // host:port or a Unix socket
  kBoolean
};

struct Option {
  std::string_view name;  // its place: `[]` stands for the entries of a list
  OptionKind kind;
  std::string_view standard;  // the default; "" none; kRequired
  std::string_view unit;
  std::int64_t least;
  std::int64_t most;
  std::string_view range;  // in words, where numbers do not say it
  std::string_view meaning;
};

inline constexpr std::string_view kRequired = "required";

[[nodiscard]] std::span<const Option> options();

/// What the option takes, as an error's "allowed": "a whole number from 1 to 60".
[[nodiscard]] std::string allowed_text(const Option& option);

/// The table in Markdown, one row an option.
[[nodiscard]] std::string options_reference();

/// What names of nodes, rules and shards are made of: 1 to 63 letters, digits, `.`, `_` and `-`, a letter or digit
/// first.
[[nodiscard]] bool is_plain_name(std::string_view text);

}  // namespace popgate
