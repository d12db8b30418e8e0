// SPDX-License-Identifier: Apache-2.0
//
// How much of a long test a build runs, and what a person asks for instead by the environment.
//
// Threads: pure functions of the environment.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>

namespace popgate::process {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
inline constexpr bool kAddressSanitizer = __has_feature(address_sanitizer);
#else
inline constexpr bool kAddressSanitizer = false;
#endif

#ifndef NDEBUG
inline constexpr bool kFullScale = false;
#else
inline constexpr bool kFullScale = true;  // the release
#endif

[[nodiscard]] inline std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// Of each part of a PoP.
[[nodiscard]] inline int kills() {
  return static_cast<int>(number_from_environment("POPGATE_KILLS", kFullScale ? 200 : 20));
}

[[nodiscard]] inline std::uint64_t seed_from_environment(std::uint64_t otherwise) {
  return number_from_environment("POPGATE_SEED", otherwise);
}

/// A promise about time is one about the release on a machine of its own; a sanitizer makes everything slower.
[[nodiscard]] inline std::chrono::milliseconds scaled(std::chrono::milliseconds promised) {
  return kFullScale ? promised : 3 * promised;
}

}  // namespace popgate::process
