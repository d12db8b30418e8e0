// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/memcached_reply.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace popgate {
namespace {

using Kind = MemcachedReply::Kind;

enum class Progress : std::uint8_t { kComplete, kNeedsMore, kMalformed };

struct Step {
  Progress progress = Progress::kMalformed;
  std::size_t bytes = 0;  // of the reply, when complete
};

constexpr Step kMalformed{Progress::kMalformed, 0};
constexpr Step kNeedsMore{Progress::kNeedsMore, 0};

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, fault] = std::from_chars(text.data(), end, number);
  if (fault != std::errc{} || stopped != end) return std::nullopt;
  return number;
}

// Takes the text up to the next space, and the space.
std::string_view take_word(std::string_view& line) {
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, space);
  line.remove_prefix(std::min(space + 1, line.size()));
  return word;
}

// memcached pads a number that became shorter with spaces.
std::string_view without_trailing_spaces(std::string_view text) {
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// `rest`: what stands behind "VALUE "; `in`: the reply from its first byte; `line_bytes`: with the line's end.
Step read_value(std::string_view rest, std::string_view in, std::size_t line_bytes, MemcachedReply& out) {
  out.key = take_word(rest);
  const auto flags = parse_number(take_word(rest));
  const auto value_bytes = parse_number(take_word(rest));
  if (out.key.empty() || !flags || !value_bytes || *value_bytes > MemcachedReplyParser::kValueBytesMax) {
    return kMalformed;
  }
  const std::size_t bytes = line_bytes + *value_bytes + 2;
  if (in.size() < bytes) return kNeedsMore;
  if (in.substr(bytes - 2, 2) != "\r\n") return kMalformed;
  out.kind = Kind::kValue;
  out.text = in.substr(line_bytes, *value_bytes);
  const auto number = parse_number(without_trailing_spaces(out.text));
  out.is_number = number.has_value();
  out.number = number.value_or(0);
  return {Progress::kComplete, bytes};
}

struct PlainReply {
  std::string_view line;
  Kind kind;
};
constexpr std::array kPlainReplies{PlainReply{"STORED", Kind::kStored}, PlainReply{"NOT_STORED", Kind::kNotStored},
                                   PlainReply{"NOT_FOUND", Kind::kNotFound}, PlainReply{"END", Kind::kEnd},
                                   PlainReply{"ERROR", Kind::kError}};

bool read_line(std::string_view line, MemcachedReply& out) {
  if (!line.empty() && line.front() >= '0' && line.front() <= '9') {
    const auto number = parse_number(without_trailing_spaces(line));
    out.kind = Kind::kNumber;
    out.number = number.value_or(0);
    return number.has_value();
  }
  for (const PlainReply& plain : kPlainReplies) {
    if (line != plain.line) continue;
    out.kind = plain.kind;
    return true;
  }
  std::string_view rest = line;
  const std::string_view word = take_word(rest);
  if (word == "STAT") {
    out.kind = Kind::kStat;
    out.key = take_word(rest);
  } else if (word == "CLIENT_ERROR") {
    out.kind = Kind::kClientError;
  } else if (word == "SERVER_ERROR") {
    out.kind = Kind::kServerError;
  } else {
    return false;
  }
  out.text = rest;
  return true;
}

// Reads the reply at the beginning of `in`.
Step read_reply(std::string_view in, MemcachedReply& out) {
  const std::size_t newline = in.substr(0, MemcachedReplyParser::kLineBytesMax).find('\n');
  if (newline == std::string_view::npos) {
    return in.size() >= MemcachedReplyParser::kLineBytesMax ? kMalformed : kNeedsMore;
  }
  if (newline == 0 || in[newline - 1] != '\r') return kMalformed;
  const std::string_view line = in.substr(0, newline - 1);
  if (line.starts_with("VALUE ")) return read_value(line.substr(6), in, newline + 1, out);
  if (!read_line(line, out)) return kMalformed;
  return {Progress::kComplete, newline + 1};
}

}  // namespace

bool MemcachedReplyParser::feed(std::string_view bytes, const Handler& handler) {
  if (!fault_.empty()) return false;
  if (!cut_.empty() && !finish_cut_reply(bytes, handler)) return false;
  while (!bytes.empty()) {
    MemcachedReply reply;
    const Step step = read_reply(bytes, reply);
    if (step.progress == Progress::kMalformed) return report_malformed(bytes);
    if (step.progress == Progress::kNeedsMore) {
      cut_.append(bytes);
      return true;
    }
    bytes.remove_prefix(step.bytes);
    if (!handler(reply)) return false;
  }
  return true;
}

// Completes the reply in `cut_` from the front of `bytes`, as far as they reach.
bool MemcachedReplyParser::finish_cut_reply(std::string_view& bytes, const Handler& handler) {
  const std::size_t had = cut_.size();
  cut_.append(bytes.substr(0, kReplyBytesMax - had));  // a cut reply is always shorter than kReplyBytesMax
  MemcachedReply reply;
  const Step step = read_reply(cut_, reply);
  if (step.progress == Progress::kMalformed) return report_malformed(cut_);
  if (step.progress == Progress::kNeedsMore) {
    bytes = {};
    return true;
  }
  bytes.remove_prefix(step.bytes - had);
  const bool goes_on = handler(reply);
  cut_.clear();
  return goes_on;
}

bool MemcachedReplyParser::report_malformed(std::string_view bytes) {
  constexpr std::size_t kShown = 40;
  fault_ = "found \"";
  for (const char byte : bytes.substr(0, kShown)) fault_.push_back(byte >= ' ' && byte <= '~' ? byte : '.');
  fault_ += "\", allowed: a reply of memcached to add, incr, get or stats";
  return false;
}

Execution execution_of(const MemcachedReply& reply) {
  // memcached's words when it could not allocate an item, and twemproxy's when nobody listens at the shard's address.
  static constexpr std::array<std::string_view, 4> kNeverExecuted{"out of memory", "out of memory storing object",
                                                                  "out of memory in incr", "Connection refused"};
  switch (reply.kind) {
    case Kind::kStored:
    case Kind::kNumber:
      return Execution::kExecuted;
    case Kind::kNotStored:
    case Kind::kNotFound:
    case Kind::kClientError:
      return Execution::kNotExecuted;
    case Kind::kServerError:
      return std::find(kNeverExecuted.begin(), kNeverExecuted.end(), reply.text) != kNeverExecuted.end()
                 ? Execution::kNotExecuted
                 : Execution::kUncertain;
    default:
      return Execution::kUncertain;
  }
}

}  // namespace popgate
