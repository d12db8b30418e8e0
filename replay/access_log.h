// SPDX-License-Identifier: Apache-2.0
//
// One access log file as a sequence of records, with an account of every line.
//
// The format is found out from the file's first lines, by majority: a virtual host in front or not. Single lines of the
// other kind are read too, as lenient ones. Nothing in a file ends the reading of it but its end, or damage to the file
// itself.
//
// Threads: one thread.
// Invariants: 1. lines = blank + comment + records + unparsable.
// Limits: kDetectLines lines are looked at to find the format; kSamplesMax unparsable lines are kept to be shown.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "replay/log_line.h"
#include "replay/log_reader.h"

namespace popgate {

inline constexpr std::size_t kDetectLines = 100;
inline constexpr std::size_t kSamplesMax = 5;

struct LineCounts {
  std::uint64_t lines = 0;
  std::uint64_t blank = 0;
  std::uint64_t comment = 0;
  std::uint64_t records = 0;
  std::uint64_t lenient = 0;  // of the records
  std::uint64_t unparsable = 0;
  std::uint64_t request_bad = 0;  // of the records
  void add(const LineCounts& other);
};

/// An unparsable line, to be shown to a person.
struct LineSample {
  std::string file;
  std::uint64_t line = 0;
  std::string reason;
  std::string text;                         // its beginning, unprintable bytes escaped
  [[nodiscard]] std::string shown() const;  // "access.log:17: no time …: 2021/09/30 09:23:53 [error] …"
};

class AccessLog {
 public:
  /// `format` empty: found out. An error when the file cannot be opened or its first bytes cannot be read.
  [[nodiscard]] static Result<std::unique_ptr<AccessLog>> open(const std::string& path,
                                                               std::optional<LogFormat> format);

  /// The next record; its views are valid until the next call. False at the end.
  [[nodiscard]] bool next(AccessRecord& out);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] LogFormat format() const { return format_; }
  [[nodiscard]] const LineCounts& counts() const { return counts_; }
  [[nodiscard]] const std::vector<LineSample>& samples() const { return samples_; }
  /// Not empty when the file was damaged: reading ended there.
  [[nodiscard]] const std::string& error() const { return reader_.error(); }
  /// Line number of the last record.
  [[nodiscard]] std::uint64_t line_number() const { return line_number_; }

 private:
  struct HeldLine {
    std::string text;
    std::uint64_t number;
    bool too_long;
  };
  AccessLog(std::string name, std::unique_ptr<ByteSource> bytes);
  void detect();
  [[nodiscard]] bool next_line(LogLine& out);
  void refuse(const LogLine& line, const char* reason);

  std::string name_;
  LineReader reader_;
  LogFormat format_ = LogFormat::kCombined;
  std::deque<HeldLine> held_;  // looked at for the format, not yet given out
  std::string current_;        // the line that was last given out of held_
  std::string scratch_;
  LineCounts counts_;
  std::vector<LineSample> samples_;
  std::uint64_t line_number_ = 0;
};

}  // namespace popgate
