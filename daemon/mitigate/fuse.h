// SPDX-License-Identifier: Apache-2.0
//
// The fuse of a rule (`max_blocked_share`): finds a rule that blocks, or would block, more than its share of the PoP's
// requests, so that a wrong rule cannot take a site down for longer than a window.
//
// Every node counts the requests that its workers checked and, for each rule with a fuse, those that the rule blocked
// or would have blocked (`action: log` and blocking turned off count alike), and tells its peers the sums so far. The
// share is that of all nodes heard, over the last kFuseWindow.
//
// What must not blow a fuse, and why it does not:
//     few requests            less than kFuseRequestsMin in the window, and nothing is judged
//     one small, odd node     sums are divided, not shares averaged
//     a peer that just came   counts when its figures span a window; before, as the peer it was
//     a peer that falls silent  for kFuseLostFor its last window's requests still count, all as passed: an outage makes
//                             no share greater
//     a node cut off          without more than half of the members it speaks for itself only (Blown::for_pop); members
//                             that said goodbye are not missed
//     a fuse just reset       is judged when a whole window has passed since
//
// Threads: the event loop's.
// Limits: kFusedRulesMax rules; kFuseSamplesMax samples a node; as many nodes as the mesh has.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "daemon/mitigate/mitigation.h"

namespace popgate {

/// Long enough that a burst of one client is not the traffic, short enough that a wrong rule is stopped before people
/// are called.
inline constexpr std::chrono::seconds kFuseWindow{10};
inline constexpr std::chrono::seconds kFuseSampleEvery{1};
inline constexpr std::size_t kFuseSamplesMax = 16;
/// The share of 1,000 requests is off by more than 5 percentage points once in a thousand windows; of 100, every third.
inline constexpr std::uint64_t kFuseRequestsMin = 1000;
inline constexpr std::chrono::seconds kFuseHeardWithin{2};  // heartbeats come four times a second
inline constexpr std::chrono::seconds kFuseLostFor{60};

/// Of one node, since its daemon started.
struct RequestFigures {
  std::uint64_t requests = 0;
  std::map<RuleId, std::uint64_t> would_block;  // of rules with a fuse
};

/// One node's figures over the last window.
class FuseSamples {
 public:
  /// A daemon that started anew, or whose sums fell, begins again.
  void add(std::uint64_t incarnation, const RequestFigures& figures, HostInstant now);
  /// Empty until the samples span a window.
  [[nodiscard]] std::optional<RequestFigures> window(HostInstant now) const;
  /// Of the last whole window, while it is not older than kFuseLostFor; else 0.
  [[nodiscard]] std::uint64_t last_requests(HostInstant now) const;
  [[nodiscard]] bool is_heard(HostInstant now) const { return heard_ && now - *heard_ <= kFuseHeardWithin; }

 private:
  struct Sample {
    HostInstant at;
    RequestFigures figures;
  };
  std::deque<Sample> samples_;  // the first may be as old as two windows
  std::uint64_t incarnation_ = 0;
  RequestFigures latest_;
  std::optional<HostInstant> heard_;
  std::uint64_t last_requests_ = 0;
  std::optional<HostInstant> last_whole_;
};

class Fuse {
 public:
  struct Rated {
    RuleId rule = 0;
    double max_share = 0;  // 0 to 1
  };
  struct Member {
    NodeId node = 0;
    bool said_goodbye = false;
  };
  struct Share {
    RuleId rule = 0;
    double share = 0;
    std::uint64_t requests = 0;  // of the window
    bool blown = false;
  };
  struct Judged {
    bool for_pop = false;       // more than half of the members were heard
    std::vector<Share> shares;  // empty while nothing can be judged
  };

  /// This node's own under node 0.
  void hear(NodeId node, std::uint64_t incarnation, const RequestFigures& figures, HostInstant now);
  /// Somebody turned blocking on again: judged when a window has passed.
  void reset(RuleId rule, HostInstant now) { reset_at_[rule] = now; }
  [[nodiscard]] Judged judge(const std::vector<Rated>& rules, const std::vector<Member>& peers, HostInstant now);

 private:
  struct Sum {
    RequestFigures figures;
    std::size_t heard = 0;
  };
  [[nodiscard]] std::optional<Sum> add_up(const std::vector<Member>& peers, HostInstant now) const;

  std::map<NodeId, FuseSamples> nodes_;
  std::map<RuleId, HostInstant> reset_at_;  // forgotten once it has passed
};

}  // namespace popgate
