// SPDX-License-Identifier: Apache-2.0
//
// Sends and receives the messages of attach_format.h, with their descriptors, over a connected socket. Both sides use
// it: the worker inside the library and the daemon.
//
// Threads: one at a time for a socket. Nothing here blocks or allocates.
// Invariants: 1. Every descriptor that arrives is owned: kept in `descriptors` or closed.
//             2. kMessage is returned only for what attach_fault() finds no fault with and that carries as many
//                descriptors as its kind.
// Limits: kAttachDescriptorsMax descriptors a message; the kernel closes what is beyond.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "libclient/attach_format.h"
#include "libclient/file_descriptor.h"

namespace popgate {

inline constexpr std::size_t kAttachDescriptorsMax = 2;

struct AttachDescriptors {
  std::array<FileDescriptor, kAttachDescriptorsMax> items;
  std::size_t count = 0;
};

enum class AttachReceived { kMessage, kNothing, kEnd, kFaulty };
enum class AttachSent { kSent, kLater, kEnd };

/// Null when `bytes` is one well-formed message of this version, else what is wrong with it (a string literal).
/// Copies it to `out` as far as it goes.
[[nodiscard]] const char* attach_fault(std::span<const std::byte> bytes, AttachMessage& out) noexcept;
/// Descriptors that a message of this kind carries.
[[nodiscard]] std::size_t attach_descriptor_count(AttachKind kind) noexcept;

/// On kFaulty `fault` says why (a string literal).
[[nodiscard]] AttachReceived receive_attach(int socket, AttachMessage& message, AttachDescriptors& descriptors,
                                            const char*& fault) noexcept;
/// kLater: the other side's buffer is full; nothing was sent.
[[nodiscard]] AttachSent send_attach(int socket, const AttachMessage& message,
                                     std::span<const int> descriptors) noexcept;

}  // namespace popgate
