// SPDX-License-Identifier: Apache-2.0
#include "libclient/attach_message.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace popgate {
namespace {

union ControlBuffer {
  cmsghdr align;
  char bytes[CMSG_SPACE(kAttachDescriptorsMax * sizeof(int))];
};

// Takes ownership of every descriptor in the control messages first: whatever is wrong then, none leaks.
void adopt(msghdr& header, AttachDescriptors& descriptors) noexcept {
  descriptors.count = 0;
  for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr; control = CMSG_NXTHDR(&header, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(control) + i * sizeof fd, sizeof fd);
      FileDescriptor owned(fd);
      if (descriptors.count < kAttachDescriptorsMax) descriptors.items[descriptors.count++] = std::move(owned);
    }
  }
}

}  // namespace

const char* attach_fault(std::span<const std::byte> bytes, AttachMessage& out) noexcept {
  out = {};
  std::memcpy(&out, bytes.data(), std::min(bytes.size(), sizeof out));
  out.reason[sizeof out.reason - 1] = '\0';
  if (bytes.size() < offsetof(AttachMessage, kind)) return "a message of unknown length";
  if (out.magic != kAttachMagic) return "not a popgate message";
  if (out.version != kAttachVersion) return "a foreign version";
  if (bytes.size() != kAttachMessageBytes) return "a message of unknown length";
  if (out.kind < AttachKind::kHello || out.kind > AttachKind::kGoodbye) return "a message of unknown kind";
  return nullptr;
}

std::size_t attach_descriptor_count(AttachKind kind) noexcept {
  switch (kind) {
    case AttachKind::kWelcome:
      return 2;
    case AttachKind::kHello:
    case AttachKind::kRules:
      return 1;
    case AttachKind::kRefused:
    case AttachKind::kGoodbye:
      return 0;
  }
  return 0;
}

AttachReceived receive_attach(int socket, AttachMessage& message, AttachDescriptors& descriptors,
                              const char*& fault) noexcept {
  std::array<std::byte, kAttachMessageBytes> bytes;
  iovec part{bytes.data(), bytes.size()};
  ControlBuffer control;
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes;
  header.msg_controllen = sizeof control.bytes;
  const ssize_t received = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (received < 0) {
    return errno == EAGAIN || errno == EINTR ? AttachReceived::kNothing : AttachReceived::kEnd;
  }
  adopt(header, descriptors);
  if (received == 0) return AttachReceived::kEnd;
  fault = attach_fault({bytes.data(), static_cast<std::size_t>(received)}, message);
  if (fault == nullptr && (header.msg_flags & MSG_TRUNC) != 0) fault = "a message of unknown length";
  if (fault == nullptr &&
      ((header.msg_flags & MSG_CTRUNC) != 0 || descriptors.count != attach_descriptor_count(message.kind))) {
    fault = "a wrong number of descriptors";
  }
  return fault == nullptr ? AttachReceived::kMessage : AttachReceived::kFaulty;
}

AttachSent send_attach(int socket, const AttachMessage& message, std::span<const int> descriptors) noexcept {
  iovec part{const_cast<AttachMessage*>(&message), sizeof message};
  ControlBuffer control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = control.bytes;
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  if (sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return AttachSent::kSent;
  // ETOOMANYREFS: too many descriptors are on their way in this user's sockets; that passes too.
  const bool passes = errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ETOOMANYREFS;
  return passes ? AttachSent::kLater : AttachSent::kEnd;
}

}  // namespace popgate
