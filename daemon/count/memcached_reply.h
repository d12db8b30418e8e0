// SPDX-License-Identifier: Apache-2.0
//
// Reads the replies of memcached's text protocol, as they come: in pieces cut anywhere.
//
// The other side is another process, so nothing it sends is trusted: lengths are bounded before anything is stored,
// numbers must fit 64 bits, and whatever is not one of the replies that Popgate's own commands can have is an error
// after which the connection is closed. Whole replies inside one piece are read in place; only a reply that is cut is
// copied.
//
// Threads: one thread at a time.
// Invariants: 1. The replies do not depend on where the bytes were cut.
//             2. After the first malformed reply nothing is reported any more.
// Limits: kReplyBytesMax bytes a reply; values of at most kValueBytesMax bytes (a counter has at most 20 digits).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace popgate {

struct MemcachedReply {
  enum class Kind : std::uint8_t {
    kStored,
    kNotStored,
    kNotFound,
    kNumber,       // of incr
    kValue,        // one item of a get
    kEnd,          // the end of a get or of stats
    kStat,         // key: name, text: value
    kError,        // the command was not understood
    kClientError,  // text: the rest of the line
    kServerError   // text: the rest of the line
  };
  Kind kind = Kind::kEnd;
  bool is_number = false;    // of kValue: `number` holds it
  std::uint64_t number = 0;  // of kNumber and kValue
  std::string_view key;      // valid during the call only, as is `text`
  std::string_view text;
};

class MemcachedReplyParser {
 public:
  static constexpr std::size_t kLineBytesMax = 2048;
  static constexpr std::size_t kValueBytesMax = 64;
  static constexpr std::size_t kReplyBytesMax = kLineBytesMax + kValueBytesMax + 2;

  /// Returns false to stop: the connection is to be closed.
  using Handler = std::function<bool(const MemcachedReply&)>;

  /// Hands every reply that is now complete to `handler`, in order. False when a reply was malformed (see `fault`) or
  /// the handler stopped.
  [[nodiscard]] bool feed(std::string_view bytes, const Handler& handler);
  /// What was wrong, for the log: printable, bounded.
  [[nodiscard]] const std::string& fault() const { return fault_; }

 private:
  [[nodiscard]] bool finish_cut_reply(std::string_view& bytes, const Handler& handler);
  [[nodiscard]] bool report_malformed(std::string_view bytes);

  std::string cut_;  // the beginning of a reply whose rest has not come yet
  std::string fault_;
};

/// Whether a command that changes a counter was carried out, as far as its reply tells.
enum class Execution : std::uint8_t { kExecuted, kNotExecuted, kUncertain };

/// Only what is known to be answered before anything is changed counts as not executed. "Connection refused" comes from
/// twemproxy, which then had no connection to send on; "Connection timed out" comes from it too, and the increment may
/// run later.
[[nodiscard]] Execution execution_of(const MemcachedReply& reply);

}  // namespace popgate
