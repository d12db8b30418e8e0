// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/degraded_state.h"

namespace popgate {

bool DegradedState::look(bool answering, HostInstant now) {
  if (looked_ && !answering_) failed_ += now - looked_at_;
  if (answering && !answering_) steady_since_ = now;
  looked_ = true;
  looked_at_ = now;
  answering_ = answering;
  const bool steady = answering && now - steady_since_ >= kSteadyMin;
  if (steady) failed_ = microseconds(0);
  const bool was = degraded_;
  degraded_ = !steady && (degraded_ || failed_ >= kFailingMax);
  return degraded_ != was;
}

}  // namespace popgate
