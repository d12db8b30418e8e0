// SPDX-License-Identifier: Apache-2.0
//
// Whether a key's rate is over its rule's limit, and until when a key that is over is to be mitigated.
//
// `limit` hits pass, the next one is over: the figure that the rule's policy acts on is compared with >.
//
//     estimate    the estimate
//     certain     lo: whoever is mitigated was over the limit, for certain
//     cautious    hi; the estimate while hi is unknown
//     a throttle  (`mitigate: 0`) the estimate, whatever its policy: the bounds move in steps of whole slots
//
// A mitigation lasts as long as the rule says, and at least until the same figure has fallen to limit - cost, so that a
// client that waits for Retry-After is admitted. Under `cautious` that is always the fall of hi, because it may be
// known again by then. With `mitigate: 0` the fall alone ends it: on and off around the limit.
// A flood may overshoot between two judgements by more than a few per cent of the limit. An admit probability would
// keep it closer: the table has room for one, nothing sets it yet.
//
// Threads: pure functions.
// Limits: kMitigationMax from now.
#pragma once

#include "daemon/estimate/rate.h"
#include "daemon/mitigate/mitigation.h"

namespace popgate {

struct Judgement {
  HostInstant until{};
  HostInstant admitted_from{};  // one more request fits by then: a mitigation that is in force must not end earlier
};

/// `fall`: how long until the figure is admitting_level() if no further hit comes (time_until_figure_is).
[[nodiscard]] Judgement judgement_of(const Rule& rule, microseconds fall, HostInstant now);

/// Which figure is held against the rule's limit.
[[nodiscard]] RateFigure deciding_figure(const Rule& rule);

/// True when that figure is over the limit.
[[nodiscard]] bool is_over(const Rule& rule, const Rate& rate);

/// The level to which the figure must fall for one more request to be admitted: limit - cost; under `count: all`
/// limit - 2 x cost, because the denied request that was told the time counts as well.
[[nodiscard]] double admitting_level(const Rule& rule);

/// The level at which one more request fits: limit - cost. A mitigation in force that ends at it stays as it is: under
/// `count: all` its end has room for the denied request that was told it, which must not move it.
[[nodiscard]] double fitting_level(const Rule& rule);

}  // namespace popgate
