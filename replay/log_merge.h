// SPDX-License-Identifier: Apache-2.0
//
// Several logs as one sequence of requests in the order of time.
//
// Servers write a line when a request ends, so logs are out of order by as long as requests take; merged or rotated
// ones by more. Each file is sorted in a buffer of bounded size: a file that fits is sorted wholly, a larger one as far
// as the buffer reaches. A record older than what was already given out cannot be put where it belongs: it is left out
// and counted, because a hit at a wrong time would be worse for the exact count than one hit fewer that is known.
//
// Threads: one thread.
// Invariants: 1. Times never go back.
//             2. Records of equal time keep the order of their file, and files their order on the command line.
// Limits: reorder_records records and kReorderBytesMax bytes of text over all files together, kFilesMax files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "replay/access_log.h"
#include "replay/logged_request.h"

namespace popgate {

inline constexpr std::size_t kReorderRecords = std::size_t{1} << 19;  // about 150 MiB with lines as they usually are
inline constexpr std::size_t kReorderBytesMax = std::size_t{512} << 20;
inline constexpr std::size_t kFilesMax = 512;

struct MergeOptions {
  std::optional<LogFormat> format;  // empty: found out, file by file
  std::size_t reorder_records = kReorderRecords;
  std::string default_host;  // of requests whose log does not say
};

class MergedLogs final : public RequestSource {
 public:
  /// An error when any of the files cannot be opened: a replay of half of what was asked for would mislead.
  [[nodiscard]] static Result<std::unique_ptr<MergedLogs>> open(const std::vector<std::string>& files,
                                                                const MergeOptions& options);
  ~MergedLogs() override;

  [[nodiscard]] bool next(LoggedRequest& out) override;

  [[nodiscard]] LineCounts counts() const;
  [[nodiscard]] std::vector<LineSample> samples() const;
  /// Damage to files, met while reading; reading them ended there.
  [[nodiscard]] std::vector<std::string> errors() const;
  /// Records that came later than the buffer could put right.
  [[nodiscard]] std::uint64_t too_late() const;

 private:
  class SortedLog;
  MergedLogs();
  std::vector<std::unique_ptr<SortedLog>> logs_;
};

}  // namespace popgate
