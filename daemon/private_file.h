// SPDX-License-Identifier: Apache-2.0
//
// Reads a file that holds a secret: one that nobody but its owner may read, and whose owner is this process's user or
// root.
//
// Threads: any. Reads files; never waits (a pipe of that name must not hang the start).
// Limits: the caller's `bytes_max`; a longer file is refused.
#pragma once

#include <cstddef>
#include <string>

#include "daemon/result.h"

namespace popgate {

/// `what` names the secret in errors: "the secret", "the private key".
[[nodiscard]] Result<std::string> read_private_file(const std::string& path, std::size_t bytes_max,
                                                    const std::string& what);

/// The same for a file that anybody may read.
[[nodiscard]] Result<std::string> read_public_file(const std::string& path, std::size_t bytes_max);

}  // namespace popgate
