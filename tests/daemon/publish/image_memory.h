// SPDX-License-Identifier: Apache-2.0
//
// A table in this process's memory that the real writer and the real reader share at one address, so that sanitizers
// see both.
#pragma once

#include <stdexcept>

#include "daemon/publish/table_memory.h"
#include "libclient/check/table_reader.h"
#include "tests/libclient/check/table_image.h"

namespace popgate {

class ImageMemory final : public TableMemory {
 public:
  ImageMemory(std::uint32_t bucket_count, HostInstant heartbeat) : image_(bucket_count, heartbeat) {}

  [[nodiscard]] std::uint64_t load(std::size_t word) const override {
    return image_.word(word).load(std::memory_order_relaxed);
  }
  void store(std::size_t word, std::uint64_t value) override {
    image_.word(word).store(value, std::memory_order_release);
  }
  [[nodiscard]] TableImage& image() { return image_; }
  [[nodiscard]] TableReader reader() const {
    TableReader reader;
    const char* reason = "";
    if (!reader.open(image_.bytes(), reason)) throw std::runtime_error(reason);
    return reader;
  }

 private:
  mutable TableImage image_;
};

}  // namespace popgate
