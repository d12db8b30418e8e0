// SPDX-License-Identifier: Apache-2.0
//
// What collect hands to count: the hits of one key in one slot since the last flush, added up.
//
// Threads: a value.
#pragma once

#include <cstdint>

#include "daemon/window.h"
#include "libclient/key.h"

namespace popgate {

struct HitSum {
  Key key;
  RuleNumber rule = 0;
  SlotIndex slot = 0;
  std::uint64_t hits = 0;
};

}  // namespace popgate
