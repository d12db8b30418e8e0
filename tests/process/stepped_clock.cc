// SPDX-License-Identifier: Apache-2.0
#include "tests/process/stepped_clock.h"

#include <semaphore.h>
#include <sys/mman.h>

#include <fstream>
#include <string>

namespace popgate::process {

// Renamed into place, so that no reader finds half an offset.
void SteppedClock::step_to(std::chrono::seconds ahead) {
  const std::filesystem::path unfinished = file_.string() + ".new";
  std::ofstream(unfinished) << (ahead.count() < 0 ? "" : "+") << ahead.count() << "\n";
  std::filesystem::rename(unfinished, file_);
}

std::vector<std::string> SteppedClock::environment() const {
  return {"LD_PRELOAD=" + library().string(), "FAKETIME_TIMESTAMP_FILE=" + file_.string(), "FAKETIME_NO_CACHE=1",
          "FAKETIME_DONT_FAKE_MONOTONIC=1",
          // AddressSanitizer's library wants to come first in the list of libraries, and need not.
          "ASAN_OPTIONS=verify_asan_link_order=0"};
}

void SteppedClock::remove_leftovers(pid_t ended) {
  const std::string pid = std::to_string(ended);
  (void)shm_unlink(("/faketime_shm_" + pid).c_str());
  (void)sem_unlink(("/faketime_sem_" + pid).c_str());
}

std::filesystem::path SteppedClock::library() {
  for (const auto& architecture : std::filesystem::directory_iterator("/usr/lib")) {
    const std::filesystem::path candidate = architecture.path() / "faketime" / "libfaketimeMT.so.1";
    std::error_code ignored;
    if (std::filesystem::exists(candidate, ignored)) return candidate;
  }
  return {};
}

}  // namespace popgate::process
