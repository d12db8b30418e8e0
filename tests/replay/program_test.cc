// SPDX-License-Identifier: Apache-2.0
//
// The program as a user meets it: what it prints for a small log worked out by hand, and how it ends when something is
// wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <nlohmann/json.hpp>

#include "tests/process/child_process.h"
#include "tests/replay/temporary_file.h"

namespace popgate {
namespace {

struct Ended {
  int status = -1;
  std::string output;
};

Ended run_program(const std::vector<std::string>& argv) {
  process::ChildProcess child(argv);
  const auto status = child.wait_exit(std::chrono::seconds(30));
  EXPECT_TRUE(status.has_value()) << "it did not end";
  Ended ended{-1, child.output()};
  if (status && WIFEXITED(*status)) ended.status = WEXITSTATUS(*status);
  return ended;
}

Ended run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), POPGATE_REPLAY);
  return run_program(arguments);
}

std::string line_at(int second, const std::string& client) {
  char time[64];
  std::snprintf(time, sizeof time, "10/Oct/2000:10:%02d:%02d +0000", second / 60, second % 60);
  return client + " - - [" + time + "] \"GET / HTTP/1.1\" 200 5\n";
}

// 192.0.2.1: five requests a second apart, then two more: with 3 in 60 s three pass, the fourth crosses and passes, the
// fifth and the two at 10 s and 20 s are blocked; at 400 s it passes again. 192.0.2.2: three in all, nothing happens.
std::string small_log() {
  std::string log;
  for (int i = 0; i < 5; ++i) log += line_at(i, "192.0.2.1");
  log += line_at(2, "192.0.2.2") + line_at(10, "192.0.2.1") + line_at(12, "192.0.2.2") + line_at(20, "192.0.2.1");
  log += "not a line of a log\n";
  return log + line_at(400, "192.0.2.1") + line_at(401, "192.0.2.2");
}

TEST(Program, output_that_does_not_arrive_is_told_by_every_task) {
  const TemporaryFile log(small_log());
  for (const std::string& task :
       {std::string("--generate 60s"), "--stats " + log.path(), "--rule 3/60s " + log.path()}) {
    const Ended ended = run_program({"/bin/sh", "-c", POPGATE_REPLAY " --quiet " + task + " > /dev/full"});
    EXPECT_EQ(ended.status, 1) << task;
    EXPECT_NE(ended.output.find("standard output"), std::string::npos) << task;
  }
}

TEST(Program, report_of_a_small_log_is_the_one_worked_out_by_hand) {
  const TemporaryFile log(small_log());
  const Ended ended = run({"--rule", "3/60s/5m", "--json", "--quiet", log.path()});
  ASSERT_EQ(ended.status, 0) << ended.output;
  const nlohmann::json report = nlohmann::json::parse(ended.output);
  EXPECT_EQ(report["mode"], "offline");
  EXPECT_EQ(report["requests"], 11);
  EXPECT_EQ(report["requests_matched"], 11);
  EXPECT_EQ(report["clients"], 2);
  EXPECT_EQ(report["requests_blocked"], 3);
  EXPECT_EQ(report["hits"], 8);
  EXPECT_EQ(report["clients_blocked"], 1);
  EXPECT_EQ(report["wrongly_blocked"], 0);
  EXPECT_EQ(report["wrongly_passed"], 1);
  EXPECT_DOUBLE_EQ(report["wrong_share"], 1.0 / 11);
  EXPECT_EQ(report["ideal_blocked"], 4);
  EXPECT_EQ(report["passed_but_ideal_blocks"], 1);
  EXPECT_EQ(report["blocked_but_ideal_passes"], 0);
  EXPECT_EQ(report["judgements"], 8) << "one for each hit: they are far apart";
  EXPECT_EQ(report["lo_above_exact"], 0);
  EXPECT_EQ(report["estimate_error_at_decisions"]["max"], 0.0) << "all four hits lie wholly inside the window";
  EXPECT_EQ(report["time_to_decision_s"]["count"], 1);
  EXPECT_EQ(report["time_to_enforced_s"]["count"], 1);
  EXPECT_EQ(report["ledger"]["recorded"], 8);
  EXPECT_EQ(report["ledger"]["delivered"], 8);
  const nlohmann::json& rule = report["rules"][0];
  EXPECT_EQ(rule["limit"], 3);
  EXPECT_EQ(rule["window_s"], 60.0);
  EXPECT_EQ(rule["mitigate_s"], 300.0);
  EXPECT_EQ(rule["clients"], 2);
  EXPECT_EQ(rule["clients_over"], 1);
  EXPECT_EQ(rule["crossings"], 1);
  EXPECT_EQ(rule["missed_crossings"], 0);
  EXPECT_EQ(rule["mitigations"], 1);
  EXPECT_EQ(rule["false_mitigations"], 0);
  EXPECT_EQ(rule["blocked"], 3);
  EXPECT_EQ(rule["overshoot"]["max"], 1.0);
}

TEST(Program, lines_that_cannot_be_read_are_counted_shown_and_do_not_end_the_run) {
  const TemporaryFile log(small_log());
  const Ended ended = run({"--rule", "3/60s/5m", log.path()});
  EXPECT_EQ(ended.status, 0);
  EXPECT_NE(ended.output.find("1 lines could not be read"), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find(log.path() + ":10: no time between brackets"), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("wrong decisions of all"), std::string::npos);
}

TEST(Program, made_up_log_goes_through_a_pipe_as_through_a_file) {
  const Ended log = run({"--generate", "10s", "--seed", "7"});
  ASSERT_EQ(log.status, 0);
  const TemporaryFile file(log.output);
  const Ended from_file = run({"--rule", "100/10s", "--json", "--quiet", file.path()});
  const Ended stats = run({"--stats", "--json", file.path()});
  ASSERT_EQ(stats.status, 0);
  const nlohmann::json figures = nlohmann::json::parse(stats.output)[0];
  EXPECT_EQ(figures["unparsable"], 0);
  EXPECT_EQ(figures["lenient"], 0);
  EXPECT_EQ(nlohmann::json::parse(from_file.output)["requests"], figures["records"]);
  const std::string piped =
      std::string(POPGATE_REPLAY) + " --generate 10s --seed 7 | " + POPGATE_REPLAY + " --rule 100/10s --json --quiet -";
  EXPECT_EQ(run_program({"sh", "-c", piped}).output, from_file.output);
}

TEST(Program, input_that_cannot_be_opened_is_named_and_nothing_is_replayed) {
  const TemporaryFile log(small_log());
  const Ended ended = run({"--rule", "3/60s", log.path(), "/nonexistent/access.log"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.output.find("/nonexistent/access.log: cannot be opened"), std::string::npos) << ended.output;
  EXPECT_EQ(ended.output.find("requests"), std::string::npos);
}

TEST(Program, damaged_input_is_replayed_as_far_as_it_goes_and_told_by_the_status) {
  const TemporaryFile log(std::string("\x1f\x8b\x08\x00", 4));
  const Ended ended = run({"--rule", "3/60s", log.path()});
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.output.find("the gzip data ends in the middle"), std::string::npos) << ended.output;
}

TEST(Program, bytes_behind_packed_input_are_told_by_the_status) {
  const TemporaryFile packed("");
  const std::string made = "printf '%s' '" + line_at(10, "192.0.2.1") + "' | gzip > " + packed.path() +
                           " && printf rest >> " + packed.path();
  ASSERT_EQ(run_program({"sh", "-c", made}).status, 0);
  const Ended ended = run({"--rule", "3/60s", packed.path()});
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.output.find(packed.path() + ": found 4 bytes at byte "), std::string::npos) << ended.output;
}

TEST(Program, records_beyond_the_reorder_buffer_are_told) {
  const TemporaryFile log(line_at(10, "192.0.2.1") + line_at(11, "192.0.2.1") + line_at(1, "192.0.2.1"));
  const Ended ended = run({"--rule", "3/60s", "--reorder", "1", log.path()});
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.output.find("1 records came too late"), std::string::npos) << ended.output;
}

TEST(Program, mistakes_on_the_command_line_say_what_is_allowed) {
  const auto told = [](const std::vector<std::string>& arguments) {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.status, 2) << ended.output;
    return ended.output;
  };
  EXPECT_NE(told({"--rule", "3/60s"}).find("LOG files or --synthetic"), std::string::npos);
  EXPECT_NE(told({"--synthetic", "5s"}).find("--config or --rule"), std::string::npos);
  EXPECT_NE(told({"--synthetic", "5"}).find("500ms"), std::string::npos);
  EXPECT_NE(told({"--synthetic", "5s", "--rule", "abc"}).find("LIMIT/WINDOW"), std::string::npos);
  EXPECT_NE(told({"--synthetic", "5s", "--rule", "3/60d"}).find("window"), std::string::npos);
  EXPECT_NE(told({"--synthetic", "5s", "--rule", "3/60s", "--nodes", "65"}).find("64"), std::string::npos);
  EXPECT_NE(told({"--live", "--synthetic", "5s", "--rule", "3/60s"}).find("--worker-socket"), std::string::npos);
  EXPECT_NE(told({"--synthetic", "5s", "--config", "/nonexistent/popgate.yaml"}).find("/nonexistent/popgate.yaml"),
            std::string::npos);
}

TEST(Program, every_fault_of_a_configuration_is_told) {
  const TemporaryFile config("rules:\n  - {name: a, key: [client_ip], limit: x, window: 60}\n");
  const Ended ended = run({"--synthetic", "5s", "--config", config.path()});
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.output.find("limit"), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("window"), std::string::npos) << ended.output;
}

TEST(Program, a_log_that_no_rule_falls_on_is_told_with_the_usual_reason) {
  const TemporaryFile log(small_log());
  const TemporaryFile config(
      "rules:\n  - {name: a, match: {host: www.example.com}, key: [client_ip], limit: 3, "
      "window: 60s, mitigate: 5m}\n");
  EXPECT_THAT(run({"--config", config.path(), log.path()}).output, testing::HasSubstr("say it with --host"));
  const Ended named = run({"--config", config.path(), "--host", "www.example.com", log.path()});
  EXPECT_EQ(named.output.find("--host"), std::string::npos) << named.output;
}

TEST(Program, rules_of_a_configuration_are_matched_as_at_the_edge) {
  const TemporaryFile config(
      "rules:\n"
      "  - {name: login, match: {path: /login, method: [POST]}, key: [client_ip], limit: 10, window: 60s, mitigate: "
      "10m}\n");
  const Ended ended = run({"--synthetic", "60s", "--config", config.path(), "--json", "--quiet"});
  ASSERT_EQ(ended.status, 0) << ended.output;
  const nlohmann::json report = nlohmann::json::parse(ended.output);
  // Three brute force clients at 2/s and a slow one at 0.5/s: all four go over 10 in 60 s, nobody else posts to /login.
  EXPECT_EQ(report["rules"][0]["clients"], 4);
  EXPECT_EQ(report["clients_blocked"], 4);
  EXPECT_EQ(report["wrongly_blocked"], 0);
}

}  // namespace
}  // namespace popgate
