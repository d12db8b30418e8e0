// SPDX-License-Identifier: Apache-2.0
//
// Owns one shared mapping of a file and unmaps it.
//
// Threads: a value; one owner. Whoever reads through bytes() must have stopped before the owner lets go.
// Invariants: 1. Never longer than the file was when it was mapped (map() asks the kernel), so that reading it cannot
//                raise SIGBUS unless the file is truncated later. Sealed rings cannot be; table and rules only by a
//                process of the daemon's own user.
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>

#include <cstddef>
#include <span>
#include <utility>

namespace popgate {

class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    if (this != &other) {
      reset();
      data_ = std::exchange(other.data_, nullptr);
      bytes_ = std::exchange(other.bytes_, 0);
    }
    return *this;
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { reset(); }

  /// Maps the first `bytes` of `fd`. False when the file is shorter, `bytes` is 0, or the kernel refuses.
  /// `populate` takes the page faults now and not on the request path.
  [[nodiscard]] bool map(int fd, std::size_t bytes, int protection, bool populate) noexcept {
    reset();
    struct stat status {};
    if (bytes == 0 || fstat(fd, &status) != 0 || status.st_size < 0) return false;
    if (static_cast<std::size_t>(status.st_size) < bytes) return false;
    void* data = mmap(nullptr, bytes, protection, MAP_SHARED | (populate ? MAP_POPULATE : 0), fd, 0);
    if (data == MAP_FAILED) return false;
    data_ = static_cast<std::byte*>(data);
    bytes_ = bytes;
    return true;
  }
  void reset() noexcept {
    if (data_ != nullptr) munmap(data_, bytes_);
    data_ = nullptr;
    bytes_ = 0;
  }

  [[nodiscard]] bool is_mapped() const noexcept { return data_ != nullptr; }
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::span<const std::byte> view() const noexcept { return {data_, bytes_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace popgate
