// SPDX-License-Identifier: Apache-2.0
//
// Keys for tests that spread over shards and slots' phases as hashes do; equal for equal numbers.
//
// Threads: pure functions.
#pragma once

#include <cstdint>

#include "libclient/key.h"

namespace popgate {

[[nodiscard]] constexpr std::uint64_t splitmix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

[[nodiscard]] constexpr Key test_key(std::uint64_t number) {
  return {splitmix64(2 * number), splitmix64(2 * number + 1)};
}

}  // namespace popgate
