// SPDX-License-Identifier: Apache-2.0
#include "tests/process/network_namespace.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <system_error>
#include <thread>

namespace popgate::process {
namespace {

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

void run_on_a_thread(const std::function<void()>& function) {
  std::exception_ptr thrown;
  std::thread([&] {
    try {
      function();
    } catch (...) {
      thrown = std::current_exception();
    }
  }).join();
  if (thrown) std::rethrow_exception(thrown);
}

void bring_loopback_up() {
  const FileDescriptor any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, "lo", IFNAMSIZ - 1);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (ioctl(any.get(), SIOCSIFFLAGS, &request) != 0) fail("lo: SIOCSIFFLAGS");
}

}  // namespace

NetworkNamespace::NetworkNamespace() {
  run_on_a_thread([this] {
    if (unshare(CLONE_NEWNET) != 0) fail("unshare(CLONE_NEWNET)");
    descriptor_.reset(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (!descriptor_.is_open()) fail("/proc/thread-self/ns/net");
    bring_loopback_up();
  });
}

void NetworkNamespace::run_in(int descriptor, const std::function<void()>& function) {
  if (descriptor < 0) return function();
  run_on_a_thread([&] {
    if (setns(descriptor, CLONE_NEWNET) != 0) fail("setns");
    function();
  });
}

}  // namespace popgate::process
