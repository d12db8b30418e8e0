// SPDX-License-Identifier: Apache-2.0
//
// The words of a mitigation table, as its writer sees them: the mapped file, or in the tests a memory that stops the
// writer after every store.
//
// Threads: one writer; readers of the same words elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>

namespace popgate {

class TableMemory {
 public:
  virtual ~TableMemory() = default;
  [[nodiscard]] virtual std::uint64_t load(std::size_t word) const = 0;
  /// Release: whoever sees this store sees all earlier ones.
  virtual void store(std::size_t word, std::uint64_t value) = 0;
};

}  // namespace popgate
