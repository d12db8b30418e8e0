// SPDX-License-Identifier: Apache-2.0
//
// Finds the rules that a request falls under, and each rule's key for it.
//
// Candidates come from indexes (host exactly, host suffix by suffix, each with and without the exact path), never from
// a scan over all rules: cost grows with the labels of the host and the rules that share it, not with the rule count.
//
// Threads: const; any number at once on one RulesView.
// Invariants: 1. Never allocates, never reads outside the view, for any bytes in the view and any request.
//             2. Matches come in the order of the rules in the configuration.
// Limits: kMatchesMax rules match one request; further ones are ignored and `truncated` says so.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "libclient/key.h"
#include "libclient/match/request.h"
#include "libclient/match/rules_view.h"

namespace popgate {

inline constexpr std::size_t kMatchesMax = 32;

struct Match {
  RuleNumber rule = 0;
  Key key;
};

struct Matches {
  std::array<Match, kMatchesMax> items;
  std::size_t count = 0;
  bool truncated = false;
  /// While the PoP's secret changes: the same rules' keys under the other secret, in the same order.
  SecondSecret second = SecondSecret::kNone;
  std::array<Key, kMatchesMax> second_keys;
};

void match(const RulesView& rules, const Request& request, Matches& out) noexcept;

/// For a caller that did its own matching: the key of `bytes` under the rule of that name, in a name space apart from
/// the keys that rules build. False when no enabled rule has the name.
[[nodiscard]] bool custom_key(const RulesView& rules, std::string_view rule_name, std::span<const std::byte> bytes,
                              Matches& out) noexcept;

}  // namespace popgate
