// SPDX-License-Identifier: Apache-2.0
//
// FNV-1a with 64 bits: the same on every machine and in every release, so it may name a ring or check a header. Whoever
// chooses the bytes can make two of one hash: nothing that faces an attacker.
//
// Threads: values.
// Invariants: 1. The hash depends on the bytes and their order alone, not on how they came in calls of add().
// Limits: none; a step a byte.
#pragma once

#include <cstdint>
#include <string_view>

namespace popgate {

class FnvHash {
 public:
  constexpr void add(unsigned char byte) { hash_ = (hash_ ^ byte) * 0x100000001b3; }
  constexpr void add(std::string_view bytes) {
    for (const char byte : bytes) add(static_cast<unsigned char>(byte));
  }
  [[nodiscard]] constexpr std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace popgate
