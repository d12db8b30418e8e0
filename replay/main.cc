// SPDX-License-Identifier: Apache-2.0
//
// popgate-replay: what would Popgate's rules have done with this log, and how often would it have been wrong?
//
// Exit status: 0 done; 1 done, but an input was damaged or records had to be left out; 2 the command line, the
// configuration or an input cannot be used; 3 the live run failed; 130 a live run was interrupted, and its report
// covers what was sent.
#include <cstdio>
#include <exception>

#include "replay/command_line.h"
#include "replay/live_run.h"
#include "replay/log_statistics.h"
#include "replay/log_time.h"
#include "replay/progress_line.h"
#include "replay/replay_rules.h"
#include "replay/second_spread.h"

namespace popgate {
namespace {

enum ExitStatus : int { kDone = 0, kDamaged = 1, kUnusable = 2, kFailed = 3, kInterrupted = 130 };

constexpr std::uint64_t kLookAtClockEvery = 1024;  // requests

void complain(const std::string& text) { std::fprintf(stderr, "popgate-replay: %s\n", text.c_str()); }
void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void show_samples(const std::vector<LineSample>& samples, std::uint64_t unparsable, bool quiet) {
  if (quiet || unparsable == 0) return;
  std::fprintf(stderr, "%llu lines could not be read; the first of them:\n",
               static_cast<unsigned long long>(unparsable));
  for (const LineSample& sample : samples) std::fprintf(stderr, "  %s\n", sample.shown().c_str());
}

// True when everything that was printed has arrived. A write that failed may leave nothing to flush.
bool output_arrived() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

int generate(const CommandLine& line) {
  Traffic traffic(line.traffic);
  LoggedRequest request;
  while (traffic.next(request)) {
    const std::string text = combined_line(request);
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) break;
  }
  if (output_arrived()) return kDone;
  complain("cannot write the log to standard output");
  return kDamaged;
}

int show_statistics(const CommandLine& line) {
  std::vector<LineSample> samples;
  std::vector<std::string> problems;
  const std::vector<LogFigures> rows = log_figures(line.logs, line.merge.format, samples, problems);
  print(line.json ? figures_json(rows) : figures_table(rows));
  std::uint64_t unparsable = 0;
  for (const LogFigures& row : rows) unparsable = std::max(unparsable, row.counts.unparsable);
  show_samples(samples, unparsable, line.quiet);
  for (const std::string& problem : problems) complain(problem);
  return problems.empty() ? kDone : rows.empty() ? kUnusable : kDamaged;
}

// The requests to replay, from wherever they come.
class Input {
 public:
  [[nodiscard]] ExitStatus open(const CommandLine& line) {
    if (line.synthetic) {
      traffic_ = std::make_unique<Traffic>(line.traffic);
      return kDone;
    }
    Result<std::unique_ptr<MergedLogs>> logs = MergedLogs::open(line.logs, line.merge);
    if (!logs) {
      complain(logs.error());
      return kUnusable;
    }
    logs_ = *std::move(logs);
    if (line.spread_seconds) spread_ = std::make_unique<SecondSpread>(*logs_);
    return kDone;
  }
  [[nodiscard]] RequestSource& source() {
    if (traffic_) return *traffic_;
    if (spread_) return *spread_;
    return *logs_;
  }
  /// What a reader of the result must know about the input.
  [[nodiscard]] ExitStatus close(bool quiet) const {
    if (!logs_) return kDone;
    show_samples(logs_->samples(), logs_->counts().unparsable, quiet);
    for (const std::string& error : logs_->errors()) complain(error);
    if (logs_->too_late() > 0) {
      complain(std::to_string(logs_->too_late()) + " records came too late to be put in order and were left out; " +
               "raise --reorder");
    }
    return logs_->errors().empty() && logs_->too_late() == 0 ? kDone : kDamaged;
  }

 private:
  std::unique_ptr<Traffic> traffic_;
  std::unique_ptr<MergedLogs> logs_;
  std::unique_ptr<SecondSpread> spread_;
};

Result<ReplayRules> rules_of(const CommandLine& line) {
  return line.config_file.empty() ? quick_rules(line.quick_rules) : rules_of_config(line.config_file);
}

Report replay_offline(const CommandLine& line, const ReplayRules& rules, RequestSource& source) {
  ReplayOptions options = line.replay;
  options.rules = rules.rules;
  options.keys_max = rules.keys_max;
  options.flush_interval = line.flush_interval.value_or(rules.flush_interval);
  Replayer replayer(options);
  ProgressLine progress(!line.quiet);
  LoggedRequest request;
  for (std::uint64_t i = 1; source.next(request); ++i) {
    replayer.request(request);
    if (i % kLookAtClockEvery == 0) progress.show(i, "log time " + log_time_text(request.time));
  }
  return replayer.finish();
}

Result<Report> replay_live(const CommandLine& line, const ReplayRules& rules, RequestSource& source) {
  const RuleMatcher matcher(rules.rules, HashSecret{});
  const LivePlan plan = plan_requests(source, line.plan);
  if (plan.cut) complain("the input has more requests than a live replay holds; only the first 2,000,000 are sent");
  ProgressLine progress(!line.quiet);
  LiveOptions options;
  options.sockets = line.sockets;
  options.on_progress = [&](std::uint64_t sent) {
    progress.show(sent, "of " + std::to_string(plan.requests.size()) + " sent");
  };
  return run_live(plan, matcher, options);
}

int replay(const CommandLine& line) {
  const Result<ReplayRules> rules = rules_of(line);
  if (!rules) {
    complain(rules.error());
    return kUnusable;
  }
  Input input;
  if (const ExitStatus opened = input.open(line); opened != kDone) return opened;
  Result<Report> report = line.task == ReplayTask::kLive ? replay_live(line, *rules, input.source())
                                                         : Result<Report>(replay_offline(line, *rules, input.source()));
  const ExitStatus input_status = input.close(line.quiet);
  if (!report) {
    complain(report.error());
    return kFailed;
  }
  if (report->requests > 0 && report->requests_matched == 0 && !line.quiet) {
    complain(
        "no request fell under a rule; where the log does not name the host that a rule wants, say it with --host");
  }
  print(line.json ? report_json(*report) : report_table(*report));
  return report->live.interrupted ? kInterrupted : input_status;
}

int begin(int argc, char** argv) {
  int status = 0;
  const auto line = read_command_line(argc, argv, status);
  if (!line) return status;
  switch (line->task) {
    case ReplayTask::kGenerate:
      return generate(*line);
    case ReplayTask::kStatistics:
      status = show_statistics(*line);
      break;
    case ReplayTask::kOffline:
    case ReplayTask::kLive:
      status = replay(*line);
  }
  if (output_arrived()) return status;
  complain("cannot write to standard output");
  return status == kDone ? kDamaged : status;
}

}  // namespace
}  // namespace popgate

int main(int argc, char** argv) {
  try {
    return popgate::begin(argc, argv);
  } catch (const std::exception& failure) {  // out of memory
    popgate::complain(failure.what());
    return popgate::kFailed;
  }
}
