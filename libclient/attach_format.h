// SPDX-License-Identifier: Apache-2.0
//
// What a worker and the daemon say to each other over the worker socket (AF_UNIX, SOCK_SEQPACKET): fixed-size messages,
// some with descriptors attached. Everything else they share is memory.
//
//     worker -> daemon   kHello    + the ring (1 descriptor)
//     daemon -> worker   kWelcome  + table, rules (2 descriptors, read-only)
//     daemon -> worker   kRules    + rules        (1 descriptor, read-only; after each reload)
//     daemon -> worker   kRefused  reason, then the daemon closes
//     worker -> daemon   kGoodbye  the worker is closing; the daemon drains the ring and lets it go
//
// Either side closing the socket ends the attachment. After an end without kGoodbye the daemon drains the ring once
// more. Limits: one message is kAttachMessageBytes; kWorkersMax attachments a daemon.
#pragma once

#include <cstddef>
#include <cstdint>

namespace popgate {

inline constexpr std::uint32_t kAttachMagic = 0x50504731;  // "PPG1"
inline constexpr std::uint32_t kAttachVersion = 1;
/// The most that the option workers_max may ask for.
inline constexpr std::uint32_t kWorkersMax = 1024;

enum class AttachKind : std::uint32_t { kHello = 1, kWelcome = 2, kRules = 3, kRefused = 4, kGoodbye = 5 };

struct AttachMessage {
  std::uint32_t magic = kAttachMagic;
  std::uint32_t version = kAttachVersion;
  AttachKind kind = AttachKind::kHello;
  std::uint32_t reserved = 0;
  std::uint64_t table_bytes = 0;  // kWelcome
  std::uint64_t rules_bytes = 0;  // kWelcome, kRules
  char reason[96] = {};           // kRefused, zero-terminated
};
inline constexpr std::size_t kAttachMessageBytes = sizeof(AttachMessage);
static_assert(kAttachMessageBytes == 128);

}  // namespace popgate
