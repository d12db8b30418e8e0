// SPDX-License-Identifier: Apache-2.0
//
// The brakes on disk, so that they hold across a restart and a reboot: one small file, replaced whole at every order.
//
//     head    : magic 8 | version 4 | registers 4 | node 8 | highest stamp 8
//     register: side 1 | off 1 | origin 1 | untold 1 | rule 8 | stamp 8 | node 8 | ordered at 8 |
//               orderer's name: bytes 2, text | reason: bytes 2, text
//     end     : CRC-32 of all before it
//
// Numbers are little-endian. Written by durable_file.h: a daemon killed at any instruction and a loss of power leave
// the old file or the new one. A whole `path`.new that is not older than the file is what a killed daemon had written:
// it is read, and gets its name. (Earlier releases wrote 0 for `untold`, and do not look at it.)
//
// Threads: any; no two writes at once. Writing waits for the disk: the daemon does it on a thread.
// Limits: kBrakesMax registers a side; kBrakeFileBytesMax bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/mitigate/brakes.h"
#include "daemon/result.h"

namespace popgate {

inline constexpr std::uint32_t kBrakeFileVersion = 1;
inline constexpr std::size_t kBrakeNameBytesMax = 64;
inline constexpr std::size_t kBrakeFileBytesMax = std::size_t{4} << 20;  // 2 * kBrakesMax of the longest registers

struct StoredBrakes {
  struct Register {
    BrakeSide side = BrakeSide::kNode;
    Brake brake;
    bool untold = false;  // Brakes::is_untold
  };
  std::uint64_t stamp = 0;  // Brakes::stamp(), also of orders that are forgotten
  std::vector<Register> registers;
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
  [[nodiscard]] std::string encode(const Brakes& brakes) const { return encode_brakes(brakes, node_); }
  /// Of encode().
  [[nodiscard]] Status write(std::string_view bytes) const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  [[nodiscard]] std::optional<StoredBrakes> load_named(std::string& note) const;

  std::string path_;
  NodeId node_;
};

}  // namespace popgate
