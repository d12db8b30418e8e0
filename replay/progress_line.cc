// SPDX-License-Identifier: Apache-2.0
#include "replay/progress_line.h"

#include <unistd.h>

#include <cstdio>

namespace popgate {
namespace {

constexpr microseconds kShownEvery = milliseconds(100);

}  // namespace

ProgressLine::ProgressLine(bool wanted) : wanted_(wanted && isatty(STDERR_FILENO) == 1) {}

void ProgressLine::show(std::uint64_t requests, const std::string& where) {
  if (!wanted_) return;
  const HostInstant now = HostClock::now();
  if (now < next_) return;
  next_ = now + kShownEvery;
  shown_ = true;
  std::fprintf(stderr, "\r\033[K%llu requests, %s", static_cast<unsigned long long>(requests), where.c_str());
  std::fflush(stderr);
}

void ProgressLine::clear() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

}  // namespace popgate
