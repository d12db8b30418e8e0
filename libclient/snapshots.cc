// SPDX-License-Identifier: Apache-2.0
#include "libclient/snapshots.h"

namespace popgate {

void Snapshots::publish() noexcept {
  const bool replaced = current_.load(std::memory_order_relaxed) != nullptr;
  current_.store(&pool_[next_], std::memory_order_seq_cst);
  next_ = (next_ + 1) % kSnapshotsMax;
  retiring_ = replaced;
  seen_ = uses_.load(std::memory_order_seq_cst);
}

bool Snapshots::ready() noexcept {
  if (!retiring_) return true;
  const bool in_check = (seen_ & 1) != 0;
  if (in_check && uses_.load(std::memory_order_acquire) == seen_) return false;
  pool_[next_] = Snapshot{};
  retiring_ = false;
  return true;
}

}  // namespace popgate
