// SPDX-License-Identifier: Apache-2.0
//
// The program itself, as an operator calls it, against a real admin socket whose handlers answer what a test tells
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "daemon/admin_server.h"
#include "tests/daemon/admin_client.h"
#include "tests/process/child_process.h"

namespace popgate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr const char* kKey = "0123456789abcdef0123456789abcdef";

struct Ended {
  int status = -1;
  std::string output;
};

class PopgatectlTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/popgate-ctl-XXXXXX";
    folder_ = mkdtemp(folder);
    path_ = folder_ + "/admin.sock";
  }
  void TearDown() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  void open() {
    auto server = AdminServer::open(loop_, path_);
    ASSERT_TRUE(server.ok()) << server.error();
    server_ = *std::move(server);
  }
  // Opens when it is not open yet; keeps the last request.
  void answer(const std::string& method, const std::string& path, int status, const std::string& body) {
    if (!server_) open();
    server_->route(method, path, [this, status, body](const AdminRequest& request, AdminReply reply) {
      request_ = request;
      ++requests_;
      reply.json(status, body);
    });
  }
  // `where` redirects: 2>/dev/null leaves stdout alone, 2>&1 >/dev/null stderr.
  Ended run(std::vector<std::string> arguments, const std::string& where = "") {
    std::vector<std::string> argv{"sh", "-c", "exec \"$@\" " + where, "sh", POPGATECTL};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    process::ChildProcess child(argv, {.environment = {"POPGATE_ADMIN_SOCKET=" + path_, "TZ=CET-1"}});
    EXPECT_TRUE(turn_until(
        loop_, [&] { return !child.running(); }, std::chrono::seconds(30)))
        << "it did not end";
    const auto status = child.wait_exit(std::chrono::seconds(0));
    return {status && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1, child.output()};
  }
  [[nodiscard]] nlohmann::json body() const { return nlohmann::json::parse(request_.body, nullptr, false); }

  EventLoop loop_;
  std::string folder_;
  std::string path_;
  std::unique_ptr<AdminServer> server_;
  AdminRequest request_;
  int requests_ = 0;
};

TEST_F(PopgatectlTest, mitigations_are_a_table_on_stdout) {
  answer("GET", "/mitigations", 200,
         R"({"total":1,"mitigations":[{"key":"0123456789abcdef0123456789abcdef","kind":"automatic","rule":"login",
             "remaining_ms":252000,"until":"2001-09-09T01:50:52.000Z","decided_by":"fra-2",
             "decided_at":"2001-09-09T01:40:52.000Z","reason":"","enforced":true,
             "evidence":{"lo":11,"estimate":11.7,"hi":13,"limit":10}}]})");
  const Ended ended = run({"mitigations"}, "2>/dev/null");
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.output,
            "KEY                               RULE   KIND       REMAINING          UNTIL (CET)  BY           HITS  "
            "HERE      REASON\n"
            "0123456789abcdef0123456789abcdef  login  automatic     4m 12s  2001-09-09 02:50:52  fra-2  11.7 of 10  "
            "enforced\n");
  EXPECT_THAT(request_.query, ElementsAre());
}

TEST_F(PopgatectlTest, filters_of_mitigations_reach_the_daemon) {
  answer("GET", "/mitigations", 200, R"({"total":0,"mitigations":[]})");
  EXPECT_EQ(run({"mitigations", "--rule", "a b&c", "--key", kKey, "--by", "n", "--kind", "lift", "--limit", "5",
                 "--offset", "7"})
                .status,
            0);
  EXPECT_THAT(request_.query, ElementsAre(Pair("rule", "a b&c"), Pair("key", kKey), Pair("by", "n"),
                                          Pair("kind", "lift"), Pair("limit", "5"), Pair("offset", "7")));
}

TEST_F(PopgatectlTest, json_is_the_daemons_own_wherever_the_flag_stands) {
  const std::string json = R"({ "total": 0,   "mitigations": [] })";
  answer("GET", "/mitigations", 200, json);
  EXPECT_EQ(run({"--json", "mitigations"}, "2>/dev/null").output, json + "\n");
  EXPECT_EQ(run({"mitigations", "--json"}, "2>/dev/null").output, json + "\n");
}

TEST_F(PopgatectlTest, hexadecimal_digits_are_a_key_and_anything_else_a_rule_with_values) {
  answer("GET", "/explain", 200, R"({"key":"x"})");
  EXPECT_EQ(run({"explain", kKey}).status, 0);
  EXPECT_THAT(request_.query, ElementsAre(Pair("key", kKey)));
  EXPECT_EQ(run({"explain", "login", "2001:db8::1", "-", "", "a/b c"}).status, 0);
  EXPECT_THAT(request_.query, ElementsAre(Pair("rule", "login"), Pair("value", "2001:db8::1"), Pair("value", "-"),
                                          Pair("value", ""), Pair("value", "a/b c")));
  EXPECT_EQ(run({"explain", kKey, "1.2.3.4"}).status, 0);
  EXPECT_THAT(request_.query, ElementsAre(Pair("rule", kKey), Pair("value", "1.2.3.4")));
}

TEST_F(PopgatectlTest, block_sends_key_duration_and_reason) {
  answer("POST", "/block", 200, R"({"key":"0123456789abcdef0123456789abcdef","until":"2001-09-09T01:50:52.000Z"})");
  const Ended ended = run({"block", kKey, "--for", "10m", "--reason", "ticket \"7\""});
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(body(), nlohmann::json({{"key", kKey}, {"for_ms", 600'000}, {"reason", "ticket \"7\""}}));
  EXPECT_EQ(ended.output,
            "Blocked key 0123456789abcdef0123456789abcdef on every node until 2001-09-09 02:50:52 CET.\n"
            "To end it earlier:  popgatectl --socket " +
                path_ + " lift 0123456789abcdef0123456789abcdef\n");
}

TEST_F(PopgatectlTest, lift_sends_rule_and_values) {
  answer("POST", "/lift", 200, R"({"key":"0123456789abcdef0123456789abcdef"})");
  EXPECT_EQ(run({"lift", "login", "1.2.3.4", "-"}).status, 0);
  EXPECT_EQ(body(), nlohmann::json({{"rule", "login"}, {"values", {"1.2.3.4", "-"}}}));
}

TEST_F(PopgatectlTest, refusal_is_the_daemons_sentence_on_stderr_and_status_1) {
  answer("POST", "/block", 409, R"({"error":"this node may not decide yet: it waits for a snapshot"})");
  const Ended ended = run({"block", kKey, "--for", "10m"}, "2>&1 >/dev/null");
  EXPECT_EQ(ended.status, 1);
  EXPECT_EQ(ended.output, "popgatectl: this node may not decide yet: it waits for a snapshot\n");
}

TEST_F(PopgatectlTest, faults_of_a_configuration_are_listed) {
  answer("POST", "/reload", 400, R"({"error":"2 faults","faults":["a.yaml:1:2: x","a.yaml:3:4: y"]})");
  const Ended ended = run({"reload"}, "2>&1 >/dev/null");
  EXPECT_EQ(ended.status, 1);
  EXPECT_EQ(ended.output, "popgatectl: 2 faults\n  a.yaml:1:2: x\n  a.yaml:3:4: y\n");
}

TEST_F(PopgatectlTest, reload_says_what_needs_a_restart) {
  answer("POST", "/reload", 200, R"({"rules":3,"revision":"00000000000000aa","needs_restart":["counters","mesh"]})");
  EXPECT_THAT(run({"reload"}).output, HasSubstr("restarted: counters, mesh.\n"));
}

TEST_F(PopgatectlTest, ring_that_disagrees_is_status_1_with_json_too) {
  answer("POST", "/ring-check", 200, R"({"agrees":false,"through_proxy":true,"shards":[]})");
  EXPECT_EQ(run({"ring-check"}).status, 1);
  EXPECT_EQ(run({"ring-check", "--json"}).status, 1);
}

TEST_F(PopgatectlTest, ring_that_agrees_is_status_0) {
  answer("POST", "/ring-check", 200, R"({"agrees":true,"through_proxy":true,"shards":[]})");
  const Ended ended = run({"ring-check"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.output, HasSubstr("They agree: "));
}

TEST_F(PopgatectlTest, metrics_come_as_they_are) {
  open();
  server_->route("GET", "/metrics", [](const AdminRequest&, AdminReply reply) { reply.plain(200, "x 1\n"); });
  const Ended ended = run({"metrics"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.output, "x 1\n");
}

TEST_F(PopgatectlTest, large_answer_arrives_whole) {
  open();
  const std::string large(std::size_t{16} << 20, 'x');
  server_->route("GET", "/metrics", [&](const AdminRequest&, AdminReply reply) { reply.plain(200, large); });
  EXPECT_EQ(run({"metrics"}).output, large + "\n");
}

TEST_F(PopgatectlTest, ready_asks_until_it_is) {
  open();
  server_->route("GET", "/ready", [this](const AdminRequest&, AdminReply reply) {
    if (++requests_ < 3) return reply.error(503, "shard cache-2 is not connected");
    reply.json(200, R"({"ready":true})");
  });
  const Ended ended = run({"ready", "--wait", "20s"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.output, "ready\n");
  EXPECT_EQ(requests_, 3);
}

TEST_F(PopgatectlTest, ready_that_is_not_in_time_says_what_is_missing) {
  answer("GET", "/ready", 503, R"({"error":"shard cache-2 is not connected"})");
  const Ended ended = run({"ready", "--wait", "200ms"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_EQ(ended.output, "popgatectl: shard cache-2 is not connected\n");
  EXPECT_GE(requests_, 2);
  EXPECT_EQ(run({"ready"}).status, 1);
}

TEST_F(PopgatectlTest, ready_waits_for_a_daemon_that_is_still_to_come) {
  Timer start(loop_, [this] { answer("GET", "/ready", 200, R"({"ready":true})"); });
  start.start_once(std::chrono::milliseconds(300));
  EXPECT_EQ(run({"ready", "--wait", "20s"}).status, 0);
}

TEST_F(PopgatectlTest, quiet_ready_prints_nothing) {
  EXPECT_EQ(run({"ready", "--quiet"}).output, "");
  answer("GET", "/ready", 503, R"({"error":"x"})");
  const Ended ended = run({"ready", "--quiet"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_EQ(ended.output, "");
}

TEST_F(PopgatectlTest, no_socket_is_status_3_and_says_which_and_what_to_check) {
  const Ended ended = run({"status"}, "2>&1 >/dev/null");
  EXPECT_EQ(ended.status, 3);
  EXPECT_EQ(ended.output, "popgatectl: popgated at " + path_ +
                              ": there is no such socket: is popgated running, and is this its admin_socket?\n");
}

TEST_F(PopgatectlTest, socket_option_goes_before_the_environment) {
  const Ended ended = run({"--socket", folder_ + "/other.sock", "status"});
  EXPECT_EQ(ended.status, 3);
  EXPECT_THAT(ended.output, HasSubstr(folder_ + "/other.sock: there is no such socket"));
}

TEST_F(PopgatectlTest, daemon_that_does_not_answer_is_status_3) {
  open();
  std::vector<AdminReply> never;
  server_->route("GET", "/status", [&](const AdminRequest&, AdminReply reply) { never.push_back(std::move(reply)); });
  const Ended ended = run({"--timeout", "200ms", "status"});
  EXPECT_EQ(ended.status, 3);
  EXPECT_THAT(ended.output, HasSubstr("no answer within 200ms"));
}

TEST_F(PopgatectlTest, daemon_that_hangs_up_is_status_3) {
  const auto listener = UnixListener::listen(path_, {"test", SOCK_STREAM});
  ASSERT_TRUE(listener.ok()) << listener.error();
  Timer hang_up(loop_, [&] { const FileDescriptor client(accept(listener->descriptor(), nullptr, nullptr)); });
  hang_up.start_every(std::chrono::milliseconds(2));
  const Ended ended = run({"status"});
  EXPECT_EQ(ended.status, 3);
  EXPECT_THAT(ended.output, HasSubstr("closed the connection"));
}

TEST_F(PopgatectlTest, answer_that_is_no_json_is_status_3) {
  answer("GET", "/status", 200, "[1, 2");
  EXPECT_EQ(run({"status"}).status, 3);
}

TEST_F(PopgatectlTest, wrong_command_lines_are_status_2) {
  open();
  const std::vector<std::vector<std::string>> wrong{{},
                                                    {"unknown"},
                                                    {"explain"},
                                                    {"explain", "login"},
                                                    {"block", kKey},
                                                    {"block", kKey, "--for", "10"},
                                                    {"block", kKey, "--for", "-10m"},
                                                    {"block", kKey, "--for", "0s"},
                                                    {"block", kKey, "--for", "15d"},
                                                    {"ready", "--wait", "long"},
                                                    {"mitigations", "--kind", "none"},
                                                    {"mitigations", "--limit", "0"},
                                                    {"status", "--what"}};
  for (const auto& arguments : wrong) {
    const Ended ended = run(arguments, "2>&1 >/dev/null");
    EXPECT_EQ(ended.status, 2) << testing::PrintToString(arguments) << ended.output;
    EXPECT_NE(ended.output, "") << testing::PrintToString(arguments);
  }
}

TEST_F(PopgatectlTest, help_states_the_exit_statuses) {
  const Ended ended = run({"--help"}, "2>/dev/null");
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.output, HasSubstr("Exit status: 0 done; 1 refused"));
  for (const char* command : {"status", "ready", "peers", "rules", "mitigations", "explain", "block", "lift", "reload",
                              "ring-check", "metrics"}) {
    EXPECT_THAT(ended.output, HasSubstr(command));
    EXPECT_EQ(run({command, "--help"}).status, 0) << command;
  }
}

}  // namespace
}  // namespace popgate
