// SPDX-License-Identifier: Apache-2.0
#include "replay/live_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace popgate {
namespace {

constexpr std::size_t kAlign = 64;
constexpr std::size_t round_up(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }
constexpr std::size_t kWatchesAt = round_up(sizeof(LiveControl));
constexpr std::size_t kResultsAt = kWatchesAt + round_up(sizeof(LiveWatch) * kWatchesMax);

}  // namespace

Result<std::unique_ptr<LiveMemory>> LiveMemory::make(std::size_t requests) {
  const std::size_t bytes = kResultsAt + requests * sizeof(LiveResult);
  // Zeros are a valid state of everything in it, and pages are only taken when they are touched.
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return Error{std::string("no memory for the results: ") + std::strerror(errno)};
  return std::unique_ptr<LiveMemory>(new LiveMemory(base, bytes));
}

LiveMemory::LiveMemory(void* base, std::size_t bytes)
    : base_(base),
      bytes_(bytes),
      control_(static_cast<LiveControl*>(base)),
      watches_(reinterpret_cast<LiveWatch*>(static_cast<char*>(base) + kWatchesAt)),
      results_(reinterpret_cast<LiveResult*>(static_cast<char*>(base) + kResultsAt)) {}

LiveMemory::~LiveMemory() { munmap(base_, bytes_); }

}  // namespace popgate
