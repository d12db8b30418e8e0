// SPDX-License-Identifier: Apache-2.0
//
// What an error about a full disk must say beside the reason: how much is wanted, and how much there is.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <string>

namespace popgate {

/// " (8389632 bytes are needed, 4096 are free)"; without the second half where that cannot be known. `path`: the file
/// or its folder.
[[nodiscard]] std::string room_text(const std::string& path, std::size_t bytes);

}  // namespace popgate
