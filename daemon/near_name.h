// SPDX-License-Identifier: Apache-2.0
//
// The known name that someone probably meant who wrote an unknown one.
//
// Threads: pure. Limits: names beyond 64 bytes are near to nothing; the work is the product of the lengths.
#pragma once

#include <span>
#include <string_view>

namespace popgate {

/// The known name with the fewest letters added, dropped or changed (two neighbours swapped count once); empty when
/// none is within a third of its length.
[[nodiscard]] std::string_view near_name(std::string_view written, std::span<const std::string_view> known);

}  // namespace popgate
