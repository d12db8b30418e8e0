// SPDX-License-Identifier: Apache-2.0
//
// A brake: the last order about whether Popgate may block, for everything or for one rule.
//
// `off` stops blocking and nothing else: counting, deciding, recording and telling peers go on, and a request that
// would have been blocked is judged as under `action: log`.
//
// Threads: values.
// Invariants: 1. Of two orders for one scope, every node chooses the same (stands_over).
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "daemon/mitigate/mitigation.h"

namespace popgate {

inline constexpr RuleId kEveryRule = 0;

/// When it was ordered: microseconds of the orderer's wall clock, or one more than the highest stamp it has seen. So an
/// order beats every one that its node knew, and, as far as clocks agree, also those it had not heard of yet: a node
/// that comes up with nothing on disk and is told at once must not lose to orders of last week. A node that lost its
/// file and whose clock was set back may give a version twice; content then decides, on every node alike
/// (stands_over). What such a node is ordered before it has heard a peer is told to nobody under a version that could
/// lose: Brakes::expect_peers.
struct BrakeVersion {
  std::uint64_t stamp = 0;
  NodeId node = 0;
  friend auto operator<=>(const BrakeVersion&, const BrakeVersion&) = default;
};

enum class BrakeOrigin : std::uint8_t {
  kOperator = 0,
  kFuse = 1,       // max_blocked_share was passed
  kRecovered = 2,  // a daemon's memory was lost, and the table says that it had stopped blocking
};
inline constexpr std::uint8_t kBrakeOrigins = 3;
[[nodiscard]] std::string_view brake_origin_name(BrakeOrigin origin);

struct Brake {
  RuleId rule = kEveryRule;
  bool off = false;
  BrakeVersion version;
  BrakeOrigin origin = BrakeOrigin::kOperator;
  PopInstant ordered_at{};  // the orderer's wall clock, for people
  std::string ordered_by;   // the orderer's node name
  std::string reason;
  friend bool operator==(const Brake&, const Brake&) = default;
};

/// By version; between equal versions (a node that lost its memory, or a fault) `off` stands, then by content.
[[nodiscard]] bool stands_over(const Brake& a, const Brake& b);

/// 64 bits over all of it; the same on every node.
[[nodiscard]] std::uint64_t brake_hash(const Brake& brake);

}  // namespace popgate
