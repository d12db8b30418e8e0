// SPDX-License-Identifier: Apache-2.0
//
// The lines of a log file: plain, gzip (any number of members) or zstd (any number of frames), told apart by their
// first bytes and not by their name; `-` is standard input.
//
// Threads: one thread.
// Limits: a line of more than kLineBytesMax bytes is cut there and marked; its rest is skipped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "daemon/result.h"

namespace popgate {

inline constexpr std::size_t kLineBytesMax = 65536;

/// A stream of bytes.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Up to out.size() bytes; 0 at the end. An error says what is wrong with the file and is final.
  [[nodiscard]] virtual Result<std::size_t> read(std::span<char> out) = 0;
};

/// Opens `path` (`-`: standard input) and finds out how it is compressed.
[[nodiscard]] Result<std::unique_ptr<ByteSource>> open_log_bytes(const std::string& path);

struct LogLine {
  std::string_view text;     // without its newline; valid until the next call
  std::uint64_t number = 0;  // from 1
  bool too_long = false;     // `text` holds the first kLineBytesMax bytes
};

class LineReader {
 public:
  explicit LineReader(std::unique_ptr<ByteSource> source);
  /// False at the end of the file, and at an error (then `error()` is not empty).
  [[nodiscard]] bool next(LogLine& out);
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  [[nodiscard]] bool fill();

  std::unique_ptr<ByteSource> source_;
  std::string buffer_;  // unread bytes are [begin_, buffer_.size())
  std::size_t begin_ = 0;
  std::uint64_t number_ = 0;
  bool at_end_ = false;
  bool skipping_ = false;  // the rest of a line that was too long
  std::string error_;
};

}  // namespace popgate
