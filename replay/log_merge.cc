// SPDX-License-Identifier: Apache-2.0
#include "replay/log_merge.h"

#include <algorithm>
#include <tuple>

#include "replay/log_client.h"

namespace popgate {

// One file behind its buffer, which is a heap with the oldest request in front.
class MergedLogs::SortedLog {
 public:
  SortedLog(std::unique_ptr<AccessLog> log, std::string default_host, std::size_t records_max, std::size_t bytes_max)
      : log_(std::move(log)),
        default_host_(std::move(default_host)),
        records_max_(records_max),
        bytes_max_(bytes_max) {}

  /// Null at the end of the file.
  [[nodiscard]] const LoggedRequest* oldest() {
    while (!at_end_ && held_.size() < records_max_ && (bytes_ < bytes_max_ || held_.empty())) read_one();
    return held_.empty() ? nullptr : &held_.front().request;
  }
  [[nodiscard]] LoggedRequest take() {
    std::pop_heap(held_.begin(), held_.end(), is_later);
    LoggedRequest request = std::move(held_.back().request);
    held_.pop_back();
    bytes_ -= request.text_bytes;
    given_ = request.time;
    return request;
  }
  [[nodiscard]] const AccessLog& log() const { return *log_; }
  [[nodiscard]] std::uint64_t too_late() const { return too_late_; }

 private:
  struct Held {
    LoggedRequest request;
    std::uint64_t order;
  };
  static bool is_later(const Held& a, const Held& b) {
    return std::tie(a.request.time, a.order) > std::tie(b.request.time, b.order);
  }

  void read_one() {
    AccessRecord record;
    if (!log_->next(record)) {
      at_end_ = true;
      return;
    }
    if (record.time < given_) {
      ++too_late_;
      return;
    }
    held_.push_back({own(record), order_++});
    bytes_ += held_.back().request.text_bytes;
    std::push_heap(held_.begin(), held_.end(), is_later);
  }

  [[nodiscard]] LoggedRequest own(const AccessRecord& record) const {
    const std::string path = unescape_log_text(record.target);
    LoggedRequest views;
    views.time = record.time;
    views.client = client_address_of(record.client);
    views.client_text = record.client;
    views.method = record.method;
    views.path = path;
    views.host = record.host.empty() ? std::string_view(default_host_) : record.host;
    views.referer = record.referer;
    views.user_agent = record.user_agent;
    return LoggedRequest::owning(views);
  }

  std::unique_ptr<AccessLog> log_;
  std::string default_host_;
  std::size_t records_max_;
  std::size_t bytes_max_;
  std::vector<Held> held_;
  std::size_t bytes_ = 0;
  std::uint64_t order_ = 0;
  std::uint64_t too_late_ = 0;
  PopInstant given_ = PopInstant::min();
  bool at_end_ = false;
};

MergedLogs::MergedLogs() = default;
MergedLogs::~MergedLogs() = default;

Result<std::unique_ptr<MergedLogs>> MergedLogs::open(const std::vector<std::string>& files,
                                                     const MergeOptions& options) {
  if (files.size() > kFilesMax) return Error{"more than 512 log files at once; concatenate some of them"};
  std::unique_ptr<MergedLogs> merged(new MergedLogs);
  std::string wrong;
  for (const std::string& file : files) {
    auto log = AccessLog::open(file, options.format);
    if (!log) {
      wrong += (wrong.empty() ? "" : "\n") + log.error();
      continue;
    }
    merged->logs_.push_back(std::make_unique<SortedLog>(
        *std::move(log), options.default_host, std::max<std::size_t>(1, options.reorder_records / files.size()),
        kReorderBytesMax / files.size()));
  }
  if (!wrong.empty()) return Error{wrong};
  return merged;
}

bool MergedLogs::next(LoggedRequest& out) {
  SortedLog* first = nullptr;
  PopInstant first_time{};
  for (const auto& log : logs_) {
    const LoggedRequest* request = log->oldest();
    if (request == nullptr || (first != nullptr && request->time >= first_time)) continue;
    first = log.get();
    first_time = request->time;
  }
  if (first == nullptr) return false;
  out = first->take();
  return true;
}

LineCounts MergedLogs::counts() const {
  LineCounts sum;
  for (const auto& log : logs_) sum.add(log->log().counts());
  return sum;
}

std::vector<LineSample> MergedLogs::samples() const {
  std::vector<LineSample> all;
  for (const auto& log : logs_) all.insert(all.end(), log->log().samples().begin(), log->log().samples().end());
  return all;
}

std::vector<std::string> MergedLogs::errors() const {
  std::vector<std::string> all;
  for (const auto& log : logs_) {
    if (!log->log().error().empty()) all.push_back(log->log().error());
  }
  return all;
}

std::uint64_t MergedLogs::too_late() const {
  std::uint64_t sum = 0;
  for (const auto& log : logs_) sum += log->too_late();
  return sum;
}

}  // namespace popgate
