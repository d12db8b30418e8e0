// SPDX-License-Identifier: Apache-2.0
//
// One mitigation as the record file holds it: 512 bytes, numbers little-endian at fixed places, a checksum over all.
//
// A record lies within one page, so that a process killed while it writes leaves the old record or the new one. After a
// loss of power the checksum tells a torn one.
//
// Threads: pure functions.
// Invariants: 1. decode(encode(m)) is m, but for texts that are longer than their place, which are cut at a character.
//             2. decode never reads outside its bytes and gives a record only for bytes whose checksum is right.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "daemon/boot_id.h"
#include "daemon/mitigate/mitigations.h"

namespace popgate {

inline constexpr std::size_t kRecordBytes = 512;
inline constexpr std::size_t kRecordNodeBytesMax = 64;     // decided_by
inline constexpr std::size_t kRecordReasonBytesMax = 256;  // reason

using RecordBytes = std::span<std::byte, kRecordBytes>;
using ConstRecordBytes = std::span<const std::byte, kRecordBytes>;

struct Record {
  Mitigation mitigation;
  BootId boot{};  // whose clock mitigation.until is
};

void encode_record(const Record& record, RecordBytes out);
/// Nothing when the bytes are not a whole record.
[[nodiscard]] std::optional<Record> decode_record(ConstRecordBytes bytes);
/// A place that was never used or was given free: all zeros.
[[nodiscard]] bool is_free_record(ConstRecordBytes bytes);

/// When a record ends on this host's clock. After a reboot it is told by the wall clock, which may be wrong by then:
/// never longer than the entry was to last from its decision, nor than any may last (kLiftKept).
[[nodiscard]] HostInstant record_end(const Record& record, const BootId& boot, HostInstant now, PopInstant wall);

}  // namespace popgate
