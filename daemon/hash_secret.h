// SPDX-License-Identifier: Apache-2.0
//
// The file that holds the secret under which a PoP hashes its keys: 32 hexadecimal digits (`popgatectl secret new`).
//
// Nodes that share counters or a mesh must share it, so it comes with their configuration. A PoP of one node makes its
// own at its first start and keeps it, because a new secret is a new set of keys: what was blocked would be forgotten.
//
// Threads: any. Reads and writes files.
// Invariants: 1. A secret that anyone but its owner may read is refused; the owner is this process's user or root.
//             2. A secret is on disk, whole, before it is returned; of two processes that start at once, both return
//                the same.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/result.h"
#include "libclient/key.h"

namespace popgate {

/// The secret in the file. A newline may follow it.
[[nodiscard]] Result<HashSecret> load_secret(const std::string& path);

/// The same; a file that does not exist is made first, from the kernel's random numbers, with mode 0600. Its folder
/// must exist.
[[nodiscard]] Result<HashSecret> load_or_create_secret(const std::string& path);

/// A new secret, from the kernel's random numbers, in a file of mode 0600. A file that exists stays as it is: an error.
[[nodiscard]] Result<HashSecret> create_secret(const std::string& path);

/// Tells secrets apart without telling them: a hash that peers exchange, and people compare (hash_text()).
[[nodiscard]] std::uint64_t secret_id(const HashSecret& secret);

/// The secret in 32 hexadecimal digits, with or without a newline; an error that begins with what was found.
[[nodiscard]] Result<HashSecret> parse_secret(const std::string& text);

}  // namespace popgate
