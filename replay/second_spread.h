// SPDX-License-Identifier: Apache-2.0
//
// Spreads requests with the same whole second over that second.
//
// A log with whole seconds does not say when within the second a request came, only in which order. Taken literally, a
// burst of thirty in a second would arrive in one instant, before any limiter could act on the first of them. So the
// i-th of n requests of a second is put at i/n of it. Times with a fraction are left as they are.
//
// Threads: one thread.
// Invariants: 1. The order stays, and a request stays in its second.
// Limits: kSpreadMax requests of one second are held; if there are more, these are spread and the rest share the
//         second's last microsecond.
#pragma once

#include <deque>

#include "replay/logged_request.h"

namespace popgate {

inline constexpr std::size_t kSpreadMax = 200'000;

class SecondSpread final : public RequestSource {
 public:
  explicit SecondSpread(RequestSource& source) : source_(source) {}
  [[nodiscard]] bool next(LoggedRequest& out) override;

 private:
  void gather();

  RequestSource& source_;
  std::deque<LoggedRequest> second_;  // of one second, spread, not yet given out
  LoggedRequest ahead_;               // the first of the next
  bool has_ahead_ = false;
  bool has_begun_ = false;
  PopInstant given_ = PopInstant::min();
};

}  // namespace popgate
