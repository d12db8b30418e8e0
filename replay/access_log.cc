// SPDX-License-Identifier: Apache-2.0
#include "replay/access_log.h"

#include "daemon/printable_text.h"

namespace popgate {
namespace {

constexpr std::size_t kSampleBytes = 120;

}  // namespace

void LineCounts::add(const LineCounts& other) {
  lines += other.lines;
  blank += other.blank;
  comment += other.comment;
  records += other.records;
  lenient += other.lenient;
  unparsable += other.unparsable;
  request_bad += other.request_bad;
}

std::string LineSample::shown() const { return file + ":" + std::to_string(line) + ": " + reason + ": " + text; }

Result<std::unique_ptr<AccessLog>> AccessLog::open(const std::string& path, std::optional<LogFormat> format) {
  Result<std::unique_ptr<ByteSource>> bytes = open_log_bytes(path);
  if (!bytes) return Error{bytes.error()};
  std::unique_ptr<AccessLog> log(new AccessLog(path == "-" ? "standard input" : path, *std::move(bytes)));
  if (format) {
    log->format_ = *format;
  } else {
    log->detect();
  }
  return log;
}

AccessLog::AccessLog(std::string name, std::unique_ptr<ByteSource> bytes)
    : name_(std::move(name)), reader_(std::move(bytes)) {}

void AccessLog::detect() {
  int balance = 0;
  LogLine line;
  while (held_.size() < kDetectLines && reader_.next(line)) {
    balance += format_vote(line.text);
    held_.push_back({std::string(line.text), line.number, line.too_long});
  }
  format_ = balance > 0 ? LogFormat::kVhost : LogFormat::kCombined;
}

bool AccessLog::next_line(LogLine& out) {
  if (held_.empty()) return reader_.next(out);
  current_ = std::move(held_.front().text);
  out = {current_, held_.front().number, held_.front().too_long};
  held_.pop_front();
  return true;
}

void AccessLog::refuse(const LogLine& line, const char* reason) {
  ++counts_.unparsable;
  if (samples_.size() < kSamplesMax)
    samples_.push_back({name_, line.number, reason, escaped_ascii(line.text, kSampleBytes)});
}

bool AccessLog::next(AccessRecord& out) {
  LogLine line;
  while (next_line(line)) {
    ++counts_.lines;
    const ParsedLine parsed = parse_log_line(line.text, format_, scratch_, out);
    switch (parsed.kind) {
      case LineKind::kBlank:
        ++counts_.blank;
        continue;
      case LineKind::kComment:
        ++counts_.comment;
        continue;
      case LineKind::kUnparsable:
        refuse(line, parsed.reason);
        continue;
      case LineKind::kRecord:
        break;
    }
    if (line.too_long) out.lenient_why = "the line is longer than 65536 bytes and was cut";
    ++counts_.records;
    if (out.lenient_why != nullptr) ++counts_.lenient;
    if (out.request_bad) ++counts_.request_bad;
    line_number_ = line.number;
    return true;
  }
  return false;
}

}  // namespace popgate
