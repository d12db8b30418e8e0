// SPDX-License-Identifier: Apache-2.0
//
// Says whether a key's rate is over its rule's limit, and if so until when the key is to be mitigated.
//
// `limit` hits pass, the next one is over: the figure that the rule's policy acts on is compared with >. A mitigation
// lasts as long as the rule says, and at least until the estimate has fallen to limit - cost, so that a client that
// waits for Retry-After is admitted. With `mitigate: 0` (throttle) the fall alone ends it: on and off around the limit.
// A flood may overshoot between two judgements by more than a few per cent of the limit. An admit probability would
// keep it closer: the table has room for one, nothing sets it yet.
//
// Threads: pure functions.
// Limits: kMitigationMax from now.
#pragma once

#include <optional>

#include "daemon/estimate/rate.h"
#include "daemon/mitigate/mitigation.h"

namespace popgate {

struct Judgement {
  HostInstant until{};
  HostInstant admitted_from{};  // the estimate has fallen by then: a mitigation must not end earlier
};

/// `fall`: how long until the estimate is admitting_level() if no further hit comes (time_until_estimate_is).
[[nodiscard]] std::optional<Judgement> judge(const Rule& rule, const Rate& rate, microseconds fall, HostInstant now);

/// True when the figure that the policy acts on is over `limit`.
[[nodiscard]] bool is_over(Policy policy, const Rate& rate, std::uint64_t limit);

/// The level to which the estimate must fall for one more request to be admitted: limit - cost; under `count: all`
/// limit - 2 x cost, because the denied request that was told the time counts as well.
[[nodiscard]] double admitting_level(const Rule& rule);

}  // namespace popgate
