// SPDX-License-Identifier: Apache-2.0
//
// Which run of the kernel this is: instants of CLOCK_BOOTTIME mean something only together with it.
//
// Threads: any.
// Invariants: 1. Two ids are equal exactly when no reboot lies between them.
#pragma once

#include <array>
#include <cstdint>

#include "daemon/result.h"

namespace popgate {

using BootId = std::array<std::uint8_t, 16>;

/// From /proc/sys/kernel/random/boot_id.
[[nodiscard]] Result<BootId> read_boot_id();

}  // namespace popgate
