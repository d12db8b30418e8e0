// SPDX-License-Identifier: Apache-2.0
//
// Counts what the allocator is asked for, by C and C++, on the calling thread.
#pragma once

#include <cstdint>
#include <functional>

namespace popgate {

/// Calls of malloc, calloc, realloc and aligned_alloc (operator new ends there) during `work`.
[[nodiscard]] std::uint64_t allocations_during(const std::function<void()>& work);

}  // namespace popgate
