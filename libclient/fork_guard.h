// SPDX-License-Identifier: Apache-2.0
//
// Tells, without a system call, whether this is still the process that made it: a page that the kernel zeroes in the
// child of a fork. (getpid() is a system call in today's C library.)
//
// Threads: is_original() by any.
// Limits: Linux 4.14. A child made by vfork or clone(CLONE_VM) shares the page: it is expected to call exec only.
#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace popgate {

class ForkGuard {
 public:
  ForkGuard() = default;
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
  ~ForkGuard() {
    if (page_ != nullptr) munmap(const_cast<unsigned char*>(page_), kBytes);
  }

  /// False, with the reason in errno, when the kernel refuses.
  [[nodiscard]] bool arm() noexcept {
    void* page = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return false;
    page_ = static_cast<volatile unsigned char*>(page);
    if (madvise(page, kBytes, MADV_WIPEONFORK) != 0) return false;
    *page_ = 1;
    return true;
  }
  [[nodiscard]] bool is_original() const noexcept { return page_ != nullptr && *page_ == 1; }

 private:
  static constexpr std::size_t kBytes = 4096;
  volatile unsigned char* page_ = nullptr;  // volatile: fork changes it behind the compiler's back
};

}  // namespace popgate
