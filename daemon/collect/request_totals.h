// SPDX-License-Identifier: Apache-2.0
//
// How many requests the workers of this node have checked, and how many of them each rule with a fuse blocked, or would
// have blocked.
//
// Threads: values.
#pragma once

#include <cstdint>
#include <map>

#include "libclient/key.h"

namespace popgate {

struct RequestTotals {
  std::uint64_t requests = 0;
  std::map<RuleNumber, std::uint64_t> would_block;  // of rules that have, or had, a fuse
  std::uint64_t rejected = 0;                       // counts of workers that fell: garbage
};

}  // namespace popgate
