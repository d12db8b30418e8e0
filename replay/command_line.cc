// SPDX-License-Identifier: Apache-2.0
#include "replay/command_line.h"

#include <popgate/popgate.h>

#include <CLI/CLI.hpp>

#include "daemon/duration.h"

namespace popgate {
namespace {

constexpr const char* kPurpose =
    "Replays access logs against Popgate's rules and says how often it was wrong, by an exact count.\n"
    "Logs: Common or Combined, with or without a virtual host in front; plain, gzip or zstd; `-` is standard input.\n"
    "Without --live the daemon's stages run in this process, on the log's clock.";

// A duration option: `500ms`, `60s`, `5m`, `1h`, `2d`.
CLI::Option* add_duration(CLI::App& app, const std::string& name, const std::string& meaning,
                          std::function<void(microseconds)> take, const std::string& standard = "") {
  CLI::Option* option = app.add_option_function<std::string>(
      name, [take = std::move(take)](const std::string& text) { take(*parse_duration(text)); }, meaning);
  option->type_name("DURATION");
  option->check([](const std::string& text) {
    const auto duration = parse_duration(text);
    if (duration && duration->count() >= 0) return std::string();
    return "found \"" + text + "\", allowed: a number and its unit, as in 500ms, 60s, 5m, 1h, 2d";
  });
  if (!standard.empty()) option->default_str(standard);
  return option;
}

void add_input(CLI::App& app, CommandLine& line) {
  app.add_option("LOG", line.logs, "Access logs; several are merged by time");
  add_duration(app, "--synthetic", "Made-up traffic of this length instead of logs", [&line](microseconds length) {
    line.synthetic = true;
    line.traffic.duration = length;
  });
  const std::map<std::string, int> formats{{"auto", 0}, {"common", 1}, {"combined", 1}, {"vhost", 2}};
  app.add_option_function<std::string>(
         "--format",
         [&line, formats](const std::string& name) {
           if (formats.at(name) == 1) line.merge.format = LogFormat::kCombined;
           if (formats.at(name) == 2) line.merge.format = LogFormat::kVhost;
         },
         "Format of the logs: auto (by their first lines), common, combined, vhost")
      ->check(CLI::IsMember({"auto", "common", "combined", "vhost"}))
      ->default_str("auto");
  app.add_option("--host", line.merge.default_host, "Host of requests whose log does not say");
  app.add_option("--reorder", line.merge.reorder_records, "Records held to put a log in order")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 26))
      ->capture_default_str();
  app.add_flag("!--whole-seconds", line.spread_seconds,
               "Leave requests at their whole second instead of spreading them over it");
}

void add_rules(CLI::App& app, CommandLine& line) {
  app.add_option("--config", line.config_file, "Configuration of popgated: rules and flush interval are taken from it");
  app.add_option("--rule", line.quick_rules, "LIMIT/WINDOW[/MITIGATE]: a rule by client address, as in 100/60s/5m")
      ->allow_extra_args(false);  // otherwise it takes the logs behind it
}

void add_offline(CLI::App& app, CommandLine& line) {
  ReplayOptions& replay = line.replay;
  app.add_option("--nodes", replay.nodes, "Nodes of the PoP (offline)")
      ->check(CLI::Range(1u, kReplayNodesMax))
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--spread",
         [&line](const std::string& name) {
           const Spread spread = name == "client"   ? Spread::kByClient
                                 : name == "random" ? Spread::kRandom
                                                    : Spread::kRoundRobin;
           line.replay.spread = spread;
           line.plan.spread = spread;
         },
         "How requests are spread over nodes: turns, client, random")
      ->check(CLI::IsMember({"turns", "client", "random"}))
      ->default_str("turns");
  app.add_option_function<std::uint64_t>(
         "--seed",
         [&line](std::uint64_t seed) {
           line.replay.seed = seed;
           line.plan.seed = seed;
           line.traffic.seed = seed;
         },
         "Everything at random follows from it")
      ->default_str("1");
  add_duration(
      app, "--rtt", "Round trip to the counters (offline)", [&replay](microseconds rtt) { replay.round_trip = rtt; },
      "1ms");
  add_duration(
      app, "--mesh-delay", "Delay between daemons (offline)",
      [&replay](microseconds delay) { replay.mesh_delay = delay; }, "1ms");
  add_duration(
      app, "--flush-interval", "Overrides the configuration's (offline)",
      [&line](microseconds interval) { line.flush_interval = interval; }, "50ms")
      ->check([](const std::string& text) {
        const auto interval = parse_duration(text);
        return interval && *interval >= milliseconds(1) && *interval <= std::chrono::minutes(1)
                   ? std::string()
                   : "found \"" + text + "\", allowed: 1ms to 1m";
      });
}

void add_live(CLI::App& app, CommandLine& line, bool& live) {
  app.add_flag("--live", live, "Send the requests through libclient into running daemons");
  app.add_option("--worker-socket", line.sockets, "Worker socket of a daemon; repeat it for each")
      ->allow_extra_args(false);
  auto* speed = app.add_option("--speed-up", line.plan.speed_up, "How much faster than the log (live)")
                    ->check(CLI::Range(0.001, 1e9))
                    ->capture_default_str();
  add_duration(app, "--duration", "Choose the speed-up so that the run takes this long (live)",
               [&line](microseconds d) { line.plan.duration = std::max<microseconds>(d, milliseconds(1)); })
      ->excludes(speed);
  add_duration(
      app, "--max-gap", "Cut idle gaps of the log to this (live)",
      [&line](microseconds gap) { line.plan.max_gap = gap; }, "1m");
}

// What no single option can check.
std::string contradiction(const CommandLine& line, bool live, bool statistics, bool generate) {
  const int tasks = (live ? 1 : 0) + (statistics ? 1 : 0) + (generate ? 1 : 0);
  if (tasks > 1) return "--live, --stats and --generate: one of them at most";
  if (generate) return line.logs.empty() && !line.synthetic ? "" : "--generate takes no input";
  if (line.logs.empty() == !line.synthetic) return "give either LOG files or --synthetic";
  if (statistics) return line.synthetic ? "--stats takes LOG files" : "";
  if (line.config_file.empty() == line.quick_rules.empty()) return "give either --config or --rule";
  if (live && line.sockets.empty()) return "--live needs --worker-socket, once for each daemon";
  if (live && line.config_file.empty()) return "--live needs --config: the rules must be the daemons' own";
  return "";
}

}  // namespace

std::optional<CommandLine> read_command_line(int argc, char** argv, int& status) {
  CommandLine line;
  bool live = false;
  bool statistics = false;
  bool generate = false;
  CLI::App app(kPurpose, "popgate-replay");
  app.set_version_flag("--version", std::string("popgate-replay ") + popgate_version());
  add_input(app, line);
  add_rules(app, line);
  add_offline(app, line);
  add_live(app, line, live);
  app.add_flag("--stats", statistics, "Only say what is in the logs");
  add_duration(app, "--generate", "Write made-up traffic of this length to standard output, as a Combined log",
               [&](microseconds length) {
                 generate = true;
                 line.traffic.duration = length;
               });
  app.add_option("--rate", line.traffic.rate, "Ordinary visitors' requests a second in made-up traffic")
      ->check(CLI::Range(0.0, 100000.0))
      ->capture_default_str();
  app.add_flag("--json", line.json, "JSON instead of a table");
  app.add_flag("--quiet", line.quiet, "No progress, no notes about lines");
  try {
    app.parse(argc, argv);
    if (const std::string wrong = contradiction(line, live, statistics, generate); !wrong.empty()) {
      throw CLI::ValidationError(wrong);
    }
  } catch (const CLI::ParseError& error) {
    status = app.exit(error) == 0 ? 0 : 2;
    return std::nullopt;
  }
  line.task = live         ? ReplayTask::kLive
              : statistics ? ReplayTask::kStatistics
              : generate   ? ReplayTask::kGenerate
                           : ReplayTask::kOffline;
  line.plan.workers = static_cast<unsigned>(std::max<std::size_t>(1, line.sockets.size()));
  return line;
}

}  // namespace popgate
