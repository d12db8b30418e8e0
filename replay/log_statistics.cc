// SPDX-License-Identifier: Apache-2.0
#include "replay/log_statistics.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>
#include <tuple>

#include "replay/log_time.h"

namespace popgate {
namespace {

constexpr std::size_t kSamplesShownMax = 10;

const char* format_name(LogFormat format) { return format == LogFormat::kVhost ? "vhost" : "combined"; }

// Most entries of one client in (t - window, t]; `seen` is sorted by client, then time.
template <typename Seen>
std::uint64_t peak_of(std::span<const Seen> seen, std::int64_t window_us) {
  std::size_t oldest = 0;
  std::size_t peak = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    while (seen[oldest].client != seen[i].client || seen[i].time_us - seen[oldest].time_us >= window_us) ++oldest;
    peak = std::max(peak, i - oldest + 1);
  }
  return peak;
}

std::string peaks_text(const LogFigures& row) {
  std::string text;
  for (const auto& peak : row.peaks) {
    if (!text.empty()) text += '/';
    text += peak ? std::to_string(*peak) : "?";
  }
  return text;
}

std::string time_or_dash(const std::optional<PopInstant>& time) { return time ? log_time_text(*time) : "-"; }

}  // namespace

std::uint32_t LogStatistics::number_of(std::string_view client) {
  folded_.assign(client);
  for (char& c : folded_) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return clients_.try_emplace(folded_, static_cast<std::uint32_t>(clients_.size())).first->second;
}

void LogStatistics::add(const AccessRecord& record) {
  const std::uint32_t client = number_of(record.client);
  if (!first_ || record.time < *first_) first_ = record.time;
  if (!last_ || record.time > *last_) last_ = record.time;
  if (before_ && record.time < *before_) ++steps_back_;
  before_ = record.time;
  if (seen_.size() < kPeakRecordsMax) {
    seen_.push_back({client, record.time.time_since_epoch().count()});
  } else {
    too_many_ = true;
  }
}

LogFigures LogStatistics::figures() {
  LogFigures figures;
  figures.clients = clients_.size();
  figures.first = first_;
  figures.last = last_;
  figures.steps_back = steps_back_;
  if (too_many_) return figures;
  std::sort(seen_.begin(), seen_.end(),
            [](const Seen& a, const Seen& b) { return std::tie(a.client, a.time_us) < std::tie(b.client, b.time_us); });
  for (std::size_t i = 0; i < kPeakWindows.size(); ++i) {
    figures.peaks[i] = peak_of(std::span<const Seen>(seen_), microseconds(kPeakWindows[i]).count());
  }
  return figures;
}

std::vector<LogFigures> log_figures(const std::vector<std::string>& files, std::optional<LogFormat> format,
                                    std::vector<LineSample>& samples, std::vector<std::string>& problems) {
  std::vector<LogFigures> rows;
  LogStatistics all;
  LineCounts all_counts;
  for (const std::string& file : files) {
    auto log = AccessLog::open(file, format);
    if (!log) {
      problems.push_back(log.error());
      continue;
    }
    LogStatistics one;
    all.begin_file();
    AccessRecord record;
    while ((*log)->next(record)) {
      one.add(record);
      if (files.size() > 1) all.add(record);
    }
    LogFigures row = one.figures();
    row.name = (*log)->name();
    row.format = format_name((*log)->format());
    row.counts = (*log)->counts();
    all_counts.add(row.counts);
    if (!(*log)->error().empty()) problems.push_back((*log)->error());
    for (const LineSample& sample : (*log)->samples()) {
      if (samples.size() < kSamplesShownMax) samples.push_back(sample);
    }
    rows.push_back(std::move(row));
  }
  if (rows.size() < 2) return rows;
  LogFigures sum = all.figures();
  sum.name = "all";
  sum.counts = all_counts;
  rows.push_back(std::move(sum));
  return rows;
}

std::string figures_table(const std::vector<LogFigures>& rows) {
  std::size_t widest = 4;
  for (const LogFigures& row : rows) widest = std::max(widest, row.name.size());
  char line[512];
  const int width = static_cast<int>(std::min<std::size_t>(widest, 60));
  std::snprintf(line, sizeof line, "%-*s %-8s %9s %6s %6s %9s %7s %10s %11s %8s %-27s %-27s %10s %s\n", width, "file",
                "format", "lines", "blank", "#", "records", "lenient", "unparsable", "request_bad", "clients",
                "first (UTC)", "last (UTC)", "steps back", "peak 1 s/60 s/1 h");
  std::string table = line;
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  for (const LogFigures& row : rows) {
    const LineCounts& c = row.counts;
    std::snprintf(
        line, sizeof line, "%-*s %-8s %9llu %6llu %6llu %9llu %7llu %10llu %11llu %8llu %-27s %-27s %10llu %s\n", width,
        row.name.substr(row.name.size() - std::min<std::size_t>(row.name.size(), 60)).c_str(), row.format.c_str(),
        number(c.lines), number(c.blank), number(c.comment), number(c.records), number(c.lenient), number(c.unparsable),
        number(c.request_bad), number(row.clients), time_or_dash(row.first).c_str(), time_or_dash(row.last).c_str(),
        number(row.steps_back), peaks_text(row).c_str());
    table += line;
  }
  return table;
}

std::string figures_json(const std::vector<LogFigures>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const LogFigures& row : rows) {
    nlohmann::json object = {{"file", row.name},
                             {"lines", row.counts.lines},
                             {"blank", row.counts.blank},
                             {"comment", row.counts.comment},
                             {"records", row.counts.records},
                             {"lenient", row.counts.lenient},
                             {"unparsable", row.counts.unparsable},
                             {"request_bad", row.counts.request_bad},
                             {"clients", row.clients},
                             {"steps_back", row.steps_back}};
    if (!row.format.empty()) object["format"] = row.format;
    if (row.first) object["first"] = log_time_text(*row.first);
    if (row.last) object["last"] = log_time_text(*row.last);
    for (std::size_t i = 0; i < kPeakWindows.size(); ++i) {
      if (row.peaks[i]) object["peak_" + std::to_string(kPeakWindows[i].count()) + "s"] = *row.peaks[i];
    }
    list.push_back(std::move(object));
  }
  return list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace popgate
