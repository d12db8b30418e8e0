// SPDX-License-Identifier: Apache-2.0
//
// The names of rules, also of those that are gone: mitigations, the ledger and brakes carry a rule's id, which is a
// hash of its name, and outlive it. Without this, `explain` could only show the hash.
//
// A text file in state_dir, one name a line, that only grows; so that a name is there after any restart. It is a
// convenience: what cannot be read or written is left out, and the id is shown.
//
// Threads: the event loop's.
// Invariants: 1. A line that is no rule's name is ignored.
// Limits: kRuleNamesMax names; further ones are known only while the rule is configured.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>

#include "daemon/result.h"
#include "daemon/rules.h"

namespace popgate {

inline constexpr std::size_t kRuleNamesMax = 65536;
inline constexpr std::size_t kRuleNameBytesMax = 63;

class RuleNames {
 public:
  /// `path`: empty: nothing outlives this object.
  explicit RuleNames(std::string path);

  /// Remembers every rule; an error when the new ones could not be written.
  [[nodiscard]] Status learn(const RuleSet& rules);
  [[nodiscard]] std::optional<std::string> name_of(RuleId rule) const;
  [[nodiscard]] std::size_t size() const { return names_.size(); }

 private:
  void read();

  std::string path_;
  std::unordered_map<RuleId, std::string> names_;
};

}  // namespace popgate
