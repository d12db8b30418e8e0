// SPDX-License-Identifier: Apache-2.0
#include "tests/process/small_disk.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>

namespace popgate::process {
namespace {

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

// Working directory and root are shared by threads; a namespace of mounts cannot be entered until they are not.
void run_on_a_thread(const std::function<void()>& function) {
  std::exception_ptr thrown;
  std::thread([&] {
    try {
      if (unshare(CLONE_FS) != 0) fail("unshare(CLONE_FS)");
      function();
    } catch (...) {
      thrown = std::current_exception();
    }
  }).join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace

std::optional<std::string> SmallDisk::unavailable() {
  try {
    const SmallDisk tried(std::filesystem::temp_directory_path(), 65536);
  } catch (const std::system_error& error) {
    return error.what();
  }
  return std::nullopt;
}

SmallDisk::SmallDisk(std::filesystem::path folder, std::size_t bytes) : folder_(std::move(folder)) {
  run_on_a_thread([&] {
    if (unshare(CLONE_NEWNS) != 0) fail("unshare(CLONE_NEWNS)");
    if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) fail("make mounts private");
    const std::string options = "size=" + std::to_string(bytes) + ",mode=0700";
    if (mount("popgate-test", folder_.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) != 0)
      fail("mount tmpfs");
    namespace_.reset(open("/proc/thread-self/ns/mnt", O_RDONLY | O_CLOEXEC));
    if (!namespace_.is_open()) fail("/proc/thread-self/ns/mnt");
  });
}

void SmallDisk::run_inside(const std::function<void()>& function) const {
  run_on_a_thread([&] {
    if (setns(namespace_.get(), CLONE_NEWNS) != 0) fail("setns");
    function();
  });
}

void SmallDisk::fill() {
  run_inside([this] {
    const FileDescriptor file(open((folder_ / "filler").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!file.is_open()) fail("filler");
    const char bytes[512] = {};
    while (write(file.get(), bytes, sizeof bytes) > 0) {
    }
    if (errno != ENOSPC) fail("filler");
  });
}

void SmallDisk::free() {
  run_inside([this] {
    if (unlink((folder_ / "filler").c_str()) != 0) fail("filler");
  });
}

void SmallDisk::set_read_only(bool read_only) {
  run_inside([&] {
    unsigned long flags = MS_REMOUNT | MS_NOSUID | MS_NODEV;
    if (read_only) flags |= MS_RDONLY;
    if (mount("popgate-test", folder_.c_str(), "tmpfs", flags, nullptr) != 0) fail("remount");
  });
}

}  // namespace popgate::process
