// SPDX-License-Identifier: Apache-2.0
//
// What a worker sees: the table mapped read-only from the descriptor that the daemon hands out.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>

#include <stdexcept>
#include <string>

#include "libclient/check/table_reader.h"

namespace popgate {

class WorkerView {
 public:
  WorkerView(int descriptor, std::size_t bytes) : bytes_(bytes) {
    address_ = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
    if (address_ == MAP_FAILED) throw std::runtime_error("cannot map the table");
    const char* reason = "";
    if (!reader_.open({static_cast<const std::byte*>(address_), bytes}, reason)) throw std::runtime_error(reason);
  }
  ~WorkerView() { munmap(address_, bytes_); }
  WorkerView(const WorkerView&) = delete;
  WorkerView& operator=(const WorkerView&) = delete;

  const TableReader* operator->() const { return &reader_; }
  [[nodiscard]] void* address() const { return address_; }

 private:
  void* address_;
  std::size_t bytes_;
  TableReader reader_;
};

}  // namespace popgate
