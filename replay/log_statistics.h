// SPDX-License-Identifier: Apache-2.0
//
// What is in a log: lines by kind, clients, first and last time, steps back in time, and the busiest client's peaks.
//
// The peaks tell at a glance which limit would bite: the most records of one client in any half-open window of a
// second, a minute and an hour.
//
// Threads: one thread.
// Limits: 16 bytes a record are kept for the peaks, of at most kPeakRecordsMax records; beyond them no peak is given.
//         Client texts are kept once each.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "replay/access_log.h"

namespace popgate {

inline constexpr std::size_t kPeakRecordsMax = std::size_t{1} << 26;  // 1 GiB
inline constexpr std::array<std::chrono::seconds, 3> kPeakWindows = {std::chrono::seconds(1), std::chrono::seconds(60),
                                                                     std::chrono::seconds(3600)};

struct LogFigures {
  std::string name;
  std::string format;
  LineCounts counts;
  std::uint64_t clients = 0;
  std::optional<PopInstant> first;
  std::optional<PopInstant> last;
  std::uint64_t steps_back = 0;
  std::array<std::optional<std::uint64_t>, kPeakWindows.size()> peaks;
};

class LogStatistics {
 public:
  void add(const AccessRecord& record);
  /// The next record begins another file: it is not compared with the one before it.
  void begin_file() { before_.reset(); }
  /// Everything but names and line counts.
  [[nodiscard]] LogFigures figures();

 private:
  struct Seen {
    std::uint32_t client;
    std::int64_t time_us;
  };
  [[nodiscard]] std::uint32_t number_of(std::string_view client);

  std::unordered_map<std::string, std::uint32_t> clients_;  // case-folded
  std::string folded_;
  std::vector<Seen> seen_;
  bool too_many_ = false;
  std::optional<PopInstant> first_, last_, before_;
  std::uint64_t steps_back_ = 0;
};

/// Reads the files one after the other. One row a file, and one over all when there are several. Files that cannot be
/// opened, or are damaged, are named in `problems`.
[[nodiscard]] std::vector<LogFigures> log_figures(const std::vector<std::string>& files,
                                                  std::optional<LogFormat> format, std::vector<LineSample>& samples,
                                                  std::vector<std::string>& problems);

[[nodiscard]] std::string figures_table(const std::vector<LogFigures>& rows);
[[nodiscard]] std::string figures_json(const std::vector<LogFigures>& rows);

}  // namespace popgate
