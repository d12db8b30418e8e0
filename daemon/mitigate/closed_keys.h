// SPDX-License-Identifier: Apache-2.0
//
// Renews what rules with `on_counter_failure: closed` mitigate, while the shard of the key cannot be counted on.
//
// Such a mitigation is short, so that it ends soon after the shard is back without anybody having to end it; and a
// client that it blocks makes no hits by which it could be decided again. So the node that decided it renews it before
// its end, as long as the state lasts.
//
// Threads: the event loop's.
// Invariants: 1. Only what this node decided is renewed, and only while it is still what is in force for the key: a
//                lift, a change of the rule and a longer mitigation end it.
// Limits: kKeysMax keys, kRenewalsPerCall renewals a call; what is beyond lapses, and is mitigated again at its next
//         hit.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>

#include "daemon/mitigate/judge_totals.h"
#include "daemon/mitigate/mitigations.h"

namespace popgate {

class ClosedKeys {
 public:
  static constexpr std::chrono::seconds kRenewBefore{2};
  static constexpr std::size_t kRenewalsPerCall = 1024;
  static constexpr std::size_t kKeysMax = 65536;

  /// Whether the shard of a key cannot be counted on.
  using DegradedFunction = std::function<bool(const Key&)>;

  ClosedKeys(Mitigations& mitigations, DegradedFunction is_degraded)
      : mitigations_(mitigations), is_degraded_(std::move(is_degraded)) {}

  /// Every change of the set that came from here.
  void decided(const Mitigation& mitigation);
  void renew(const RuleSet& rules, BothInstants now);
  [[nodiscard]] std::size_t count() const { return due_.size(); }

 private:
  struct Due {
    HostInstant at;
    Key key;
  };
  void renew(const Key& key, const RuleSet& rules, BothInstants now);

  Mitigations& mitigations_;
  DegradedFunction is_degraded_;
  std::deque<Due> due_;  // all last equally long, so the first to come is the first due
};

}  // namespace popgate
