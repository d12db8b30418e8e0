// SPDX-License-Identifier: Apache-2.0
//
// Any datagram on the worker socket, with and without a descriptor: received by both ends' code, answered by a fault or
// by a message that is what its kind says; no descriptor leaks.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "libclient/attach_message.h"

namespace {

using popgate::AttachReceived;

void require(bool condition) {
  if (!condition) std::abort();
}

void send_with_descriptors(int socket, const std::uint8_t* data, std::size_t bytes, unsigned descriptors) {
  iovec part{const_cast<std::uint8_t*>(data), bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(3 * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (descriptors > 0) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(descriptors * sizeof(int));
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors * sizeof(int));
    for (unsigned i = 0; i < descriptors; ++i) std::memcpy(CMSG_DATA(rights) + i * sizeof(int), &socket, sizeof socket);
  }
  require(sendmsg(socket, &header, 0) == static_cast<ssize_t>(bytes));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  if (bytes < 2) return 0;
  const unsigned descriptors = data[0] % 4;
  ++data;
  --bytes;
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
  send_with_descriptors(ends[0], data, bytes, descriptors);
  popgate::AttachMessage message;
  const char* fault = nullptr;
  {
    popgate::AttachDescriptors received;
    const AttachReceived outcome = popgate::receive_attach(ends[1], message, received, fault);
    if (outcome == AttachReceived::kMessage) {
      require(bytes == popgate::kAttachMessageBytes && received.count == descriptors);
      require(received.count == popgate::attach_descriptor_count(message.kind));
      require(std::memchr(message.reason, 0, sizeof message.reason) != nullptr);
      // And back: what was understood is sent as it was.
      require(std::memcmp(&message, data, offsetof(popgate::AttachMessage, reason)) == 0);
    } else {
      require(outcome == AttachReceived::kFaulty && fault != nullptr && *fault != '\0');
    }
  }
  close(ends[0]);
  const int next = fcntl(ends[1], F_DUPFD, 0);
  require(next <= ends[0]);  // the lowest free number: nothing that was received is still open below it
  close(next);
  close(ends[1]);
  return 0;
}
