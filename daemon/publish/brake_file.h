// SPDX-License-Identifier: Apache-2.0
//
// The brakes on disk, so that they hold across a restart and a reboot: one small file, replaced whole at every order.
//
//     head    : magic 8 | version 4 | registers 4 | node 8 | highest stamp 8
//     register: side 1 | off 1 | origin 1 | reserved 1 | rule 8 | stamp 8 | node 8 | ordered at 8 |
//               orderer's name: bytes 2, text | reason: bytes 2, text
//     end     : CRC-32 of all before it
//
// Numbers are little-endian. Written under another name and renamed, so that a daemon killed at any instruction leaves
// the old file or the new one. Making it outlive a loss of power (fsync) waits for the disk, which the event loop must
// not: that is done on a thread, after the order is in force.
//
// Threads: the event loop's, but for sync_to_disk().
// Limits: kBrakesMax registers a side; kBrakeFileBytesMax bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/mitigate/brakes.h"
#include "daemon/result.h"

namespace popgate {

inline constexpr std::uint32_t kBrakeFileVersion = 1;
inline constexpr std::size_t kBrakeNameBytesMax = 64;
inline constexpr std::size_t kBrakeFileBytesMax = std::size_t{4} << 20;  // 2 * kBrakesMax of the longest registers

struct StoredBrakes {
  std::uint64_t stamp = 0;  // Brakes::stamp(), also of orders that are forgotten
  std::vector<std::pair<BrakeSide, Brake>> registers;
};

[[nodiscard]] std::string encode_brakes(const Brakes& brakes, NodeId node);
/// Refuses what is not whole, of another version, or of another node; the error names what was found and what is
/// allowed.
[[nodiscard]] Result<StoredBrakes> decode_brakes(std::string_view bytes, NodeId node);

class BrakeFile {
 public:
  BrakeFile(std::string path, NodeId node) : path_(std::move(path)), node_(node) {}

  /// Nothing when there is no file. One that is refused is renamed to `path`.refused; `note` then says why.
  [[nodiscard]] std::optional<StoredBrakes> load(std::string& note) const;
  [[nodiscard]] Status write(const Brakes& brakes) const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  NodeId node_;
};

/// Waits until the file and its name are on the disk. May take as long as the disk likes: not on the event loop.
void sync_to_disk(const std::string& path);

}  // namespace popgate
