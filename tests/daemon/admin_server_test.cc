// SPDX-License-Identifier: Apache-2.0
#include "daemon/admin_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/daemon/admin_client.h"

namespace popgate {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::size_t kLarge = std::size_t{16} << 20;

std::string get(const std::string& target) { return "GET " + target + " HTTP/1.1\r\nHost: popgate\r\n\r\n"; }

std::string post(const std::string& target, const std::string& body) {
  return "POST " + target + " HTTP/1.1\r\nHost: popgate\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

std::string error_of(const std::string& reply) {
  const auto json = nlohmann::json::parse(body_of(reply), nullptr, false);
  return json.is_object() && json.contains("error") ? json["error"].get<std::string>() : "no JSON error: " + reply;
}

class AdminServerTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/popgate-admin-XXXXXX";
    folder_ = mkdtemp(folder);
    path_ = folder_ + "/admin.sock";
  }
  void TearDown() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  void open(const AdminServer::Limits& limits = {}) {
    auto server = AdminServer::open(loop_, path_, limits);
    ASSERT_TRUE(server.ok()) << server.error();
    server_ = *std::move(server);
    server_->route("GET", "/hello", [](const AdminRequest&, AdminReply reply) { reply.json(200, R"({"hello":1})"); });
    server_->route("GET", "/large",
                   [](const AdminRequest&, AdminReply reply) { reply.json(200, std::string(kLarge, 'x')); });
    server_->route("POST", "/later", [this](const AdminRequest& request, AdminReply reply) {
      body_ = request.body;
      later_ = std::move(reply);
    });
  }
  std::string ask(const std::string& bytes) {
    AdminClient client(loop_, path_);
    return client.send(bytes) ? client.reply() : "not sent";
  }

  EventLoop loop_;
  std::string folder_;
  std::string path_;
  std::unique_ptr<AdminServer> server_;
  std::optional<AdminReply> later_;
  std::string body_;
};

TEST_F(AdminServerTest, answers_with_json_its_length_and_no_cache) {
  open();
  const std::string reply = ask(get("/hello"));
  EXPECT_EQ(status_of(reply), 200);
  EXPECT_THAT(reply, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_THAT(reply, HasSubstr("Content-Length: 11\r\n"));
  EXPECT_THAT(reply, HasSubstr("Cache-Control: no-store\r\n"));
  EXPECT_EQ(body_of(reply), R"({"hello":1})");
}

TEST_F(AdminServerTest, only_its_user_may_connect) {
  const mode_t before = umask(0);
  open();
  umask(before);
  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST_F(AdminServerTest, query_reaches_the_handler_decoded_and_in_order) {
  open();
  server_->route("GET", "/echo", [](const AdminRequest& request, AdminReply reply) {
    nlohmann::json all = request.values("value");
    all.push_back(request.value("rule").value_or("none"));
    reply.json(200, all.dump());
  });
  EXPECT_EQ(body_of(ask(get("/echo?rule=a%20b&value=%2F&value=&value=1+1%3D2"))), R"(["/","","1+1=2","a b"])");
  EXPECT_EQ(body_of(ask(get("http://popgate/echo?value=x"))), R"(["x","none"])");
}

TEST_F(AdminServerTest, body_and_its_zero_bytes_reach_the_handler) {
  open();
  const std::string body("a\0b\r\n", 5);
  AdminClient client(loop_, path_);
  ASSERT_TRUE(client.send(post("/later", body)));
  ASSERT_TRUE(turn_until(loop_, [&] { return later_.has_value(); }));
  EXPECT_EQ(body_, body);
  later_->json(200, "{}");
  EXPECT_EQ(status_of(client.reply()), 200);
}

TEST_F(AdminServerTest, unknown_path_is_404_and_says_which_there_are) {
  open();
  const std::string reply = ask(get("/nothing"));
  EXPECT_EQ(status_of(reply), 404);
  EXPECT_THAT(error_of(reply), HasSubstr("/hello, /large, /later"));
}

TEST_F(AdminServerTest, other_method_is_405_and_says_which_there_are) {
  open();
  const std::string reply = ask(post("/hello", ""));
  EXPECT_EQ(status_of(reply), 405);
  EXPECT_THAT(reply, HasSubstr("Allow: GET\r\n"));
  EXPECT_EQ(error_of(reply), "/hello takes GET, not POST");
}

TEST_F(AdminServerTest, malformed_percent_is_400_and_names_the_part) {
  open();
  const std::string reply = ask(get("/hello?rule=a%2"));
  EXPECT_EQ(status_of(reply), 400);
  EXPECT_THAT(error_of(reply), HasSubstr("begins with rule"));
}

TEST_F(AdminServerTest, body_at_the_bound_passes_and_one_byte_more_is_413) {
  open();
  AdminClient client(loop_, path_);
  ASSERT_TRUE(client.send(post("/later", std::string(kAdminBodyBytesMax, 'b'))));
  ASSERT_TRUE(turn_until(loop_, [&] { return later_.has_value(); }));
  later_->json(200, "{}");
  EXPECT_EQ(status_of(client.reply()), 200);
  EXPECT_EQ(body_.size(), kAdminBodyBytesMax);
  const std::string reply = ask(post("/later", std::string(kAdminBodyBytesMax + 1, 'b')));
  EXPECT_EQ(status_of(reply), 413);
  EXPECT_EQ(error_of(reply), "a body of 65537 bytes, allowed: 65536");
}

TEST_F(AdminServerTest, body_beyond_what_is_read_is_413_too) {
  open();
  EXPECT_EQ(status_of(ask(post("/later", std::string(3 * kAdminBodyBytesRead, 'b')))), 413);
  EXPECT_FALSE(later_.has_value());
  EXPECT_EQ(status_of(ask(get("/hello"))), 200);
}

TEST_F(AdminServerTest, client_that_asks_first_whether_its_body_is_welcome_is_told_to_go_on) {
  open();
  AdminClient client(loop_, path_);
  ASSERT_TRUE(client.send("POST /later HTTP/1.1\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"));
  EXPECT_EQ(status_of(client.reply()), 100);
  ASSERT_TRUE(client.send("body"));
  ASSERT_TRUE(turn_until(loop_, [&] { return later_.has_value(); }));
  EXPECT_EQ(body_, "body");
  later_->json(200, "{}");
  EXPECT_EQ(status_of(client.reply()), 200);
}

TEST_F(AdminServerTest, headers_beyond_the_bound_are_refused) {
  open();
  AdminClient client(loop_, path_);
  const std::string long_header(kAdminHeaderBytesMax + 1, 'h');
  (void)client.send("GET /hello HTTP/1.1\r\nX: " + long_header + "\r\n\r\n");
  EXPECT_THAT(client.rest(), testing::Not(HasSubstr("hello")));
  EXPECT_EQ(status_of(ask(get("/hello"))), 200);
}

TEST_F(AdminServerTest, one_connection_carries_many_requests) {
  open();
  AdminClient client(loop_, path_);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.send(get("/hello")));
    EXPECT_EQ(body_of(client.reply()), R"({"hello":1})");
  }
  EXPECT_EQ(server_->connection_count(), 1U);
}

TEST_F(AdminServerTest, garbage_behind_a_request_ends_only_that_connection) {
  open();
  AdminClient client(loop_, path_);
  ASSERT_TRUE(client.send(get("/hello") + std::string("\x01\x02 garbage \xff\r\n\r\n\r\n") + get("/hello")));
  EXPECT_EQ(body_of(client.reply()), R"({"hello":1})");
  EXPECT_THAT(client.rest(), testing::Not(HasSubstr("hello")));
  EXPECT_EQ(status_of(ask(get("/hello"))), 200);
}

TEST_F(AdminServerTest, large_reply_arrives_whole) {
  open();
  const std::string reply = ask(get("/large"));
  EXPECT_EQ(status_of(reply), 200);
  EXPECT_EQ(body_of(reply), std::string(kLarge, 'x'));
}

TEST_F(AdminServerTest, slow_reader_gets_all_as_long_as_it_reads) {
  open({.connections_max = 4, .client_timeout = milliseconds(1000)});
  AdminClient client(loop_, path_);
  ASSERT_TRUE(client.send(get("/large")));
  // Longer than the time-out in all, but never that long without room for the next piece.
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < milliseconds(1500)) {
    client.take(65536);
    const auto next = std::chrono::steady_clock::now() + milliseconds(20);
    ASSERT_TRUE(turn_until(loop_, [&] { return std::chrono::steady_clock::now() >= next; }));
  }
  EXPECT_EQ(body_of(client.reply()).size(), kLarge);
}

TEST_F(AdminServerTest, reader_that_stalls_is_cut) {
  open({.connections_max = 4, .client_timeout = milliseconds(300)});
  AdminClient client(loop_, path_);
  ASSERT_TRUE(client.send(get("/large")));
  ASSERT_TRUE(turn_until(loop_, [&] { return server_->connection_count() == 1; }));
  EXPECT_TRUE(turn_until(loop_, [&] { return server_->connection_count() == 0; }));
  EXPECT_LT(body_of(client.rest()).size(), kLarge);
}

TEST_F(AdminServerTest, client_that_keeps_asking_and_never_reads_is_held_back) {
  open();
  AdminClient client(loop_, path_);
  ASSERT_TRUE(client.send(get("/large")));
  std::size_t taken = 0;
  const std::string more(65536, 'G');
  EXPECT_FALSE(turn_until(
      loop_,
      [&] {
        taken += client.offer(more);
        return taken > std::size_t{4} << 20;
      },
      milliseconds(500)));
  EXPECT_GT(taken, 0U);
}

TEST_F(AdminServerTest, time_between_two_requests_is_bounded) {
  open({.connections_max = 4, .client_timeout = milliseconds(300)});
  AdminClient client(loop_, path_);
  ASSERT_TRUE(client.send(get("/hello")));
  EXPECT_EQ(status_of(client.reply()), 200);
  EXPECT_EQ(client.rest(), "");
}

TEST_F(AdminServerTest, sender_that_stalls_is_cut) {
  open({.connections_max = 4, .client_timeout = milliseconds(300)});
  AdminClient silent(loop_, path_);
  AdminClient halfway(loop_, path_);
  ASSERT_TRUE(halfway.send("POST /later HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf"));
  EXPECT_THAT(silent.rest(), testing::Not(StartsWith("not closed")));
  EXPECT_THAT(halfway.rest(), testing::Not(StartsWith("not closed")));
  EXPECT_FALSE(later_.has_value());
}

// Under AddressSanitizer this also says that neither request nor text leaks.
TEST_F(AdminServerTest, client_that_leaves_in_mid_reply_costs_nothing) {
  open();
  for (int i = 0; i < 20; ++i) {
    AdminClient client(loop_, path_);
    ASSERT_TRUE(client.send(get("/large")));
    ASSERT_TRUE(turn_until(loop_, [&] { return client.take(65536) > 0; }));
    client.leave();
  }
  EXPECT_TRUE(turn_until(loop_, [&] { return server_->connection_count() == 0; }));
  EXPECT_EQ(status_of(ask(get("/hello"))), 200);
}

TEST_F(AdminServerTest, reply_to_a_client_that_has_left_goes_nowhere) {
  open();
  AdminClient client(loop_, path_);
  ASSERT_TRUE(client.send(post("/later", "x")));
  ASSERT_TRUE(turn_until(loop_, [&] { return later_.has_value(); }));
  client.leave();
  later_->json(200, std::string(kLarge, 'x'));
  EXPECT_TRUE(turn_until(loop_, [&] { return server_->connection_count() == 0; }));
}

TEST_F(AdminServerTest, reply_after_the_server_goes_nowhere) {
  open();
  AdminClient client(loop_, path_);
  ASSERT_TRUE(client.send(post("/later", "x")));
  ASSERT_TRUE(turn_until(loop_, [&] { return later_.has_value(); }));
  server_.reset();
  later_->json(200, "{}");
  EXPECT_EQ(client.rest(), "");
}

TEST_F(AdminServerTest, server_may_end_in_mid_reply) {
  open();
  AdminClient client(loop_, path_);
  ASSERT_TRUE(client.send(get("/large")));
  ASSERT_TRUE(turn_until(loop_, [&] { return client.take(65536) > 0; }));
  server_.reset();
  EXPECT_LT(client.rest().size(), kLarge);
}

TEST_F(AdminServerTest, answer_that_takes_longer_than_the_timeout_still_arrives) {
  open({.connections_max = 4, .client_timeout = milliseconds(500)});
  AdminClient client(loop_, path_);
  ASSERT_TRUE(client.send(post("/later", "x")));
  Timer answer(loop_, [&] { later_->json(200, "{}"); });
  answer.start_once(milliseconds(1000));
  EXPECT_EQ(status_of(client.reply()), 200);
}

TEST_F(AdminServerTest, reply_that_is_dropped_answers_500) {
  open();
  server_->route("GET", "/forgotten", [](const AdminRequest&, const AdminReply&) {});
  const std::string reply = ask(get("/forgotten"));
  EXPECT_EQ(status_of(reply), 500);
  EXPECT_THAT(error_of(reply), HasSubstr("without an answer"));
}

TEST_F(AdminServerTest, handler_that_throws_answers_500) {
  open();
  server_->route("GET", "/bad", [](const AdminRequest&, AdminReply) { throw std::runtime_error("bad"); });
  EXPECT_EQ(status_of(ask(get("/bad"))), 500);
}

TEST_F(AdminServerTest, clients_beyond_the_bound_wait_for_one_to_leave) {
  open({.connections_max = 3, .client_timeout = milliseconds(10'000)});
  std::vector<AdminClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(loop_, path_);
    ASSERT_TRUE(clients.back().send(get("/hello")));
    EXPECT_EQ(status_of(clients.back().reply()), 200);
  }
  AdminClient fourth(loop_, path_);
  ASSERT_TRUE(fourth.send(get("/hello")));
  EXPECT_FALSE(turn_until(
      loop_, [&] { return fourth.take(1) > 0; }, 2 * kAdminAcceptPause));
  EXPECT_EQ(server_->connection_count(), 3U);
  clients.front().leave();
  EXPECT_EQ(status_of(fourth.reply()), 200);
}

TEST_F(AdminServerTest, connections_that_never_ask_count_against_the_bound_too) {
  open({.connections_max = 2, .client_timeout = milliseconds(10'000)});
  AdminClient silent(loop_, path_);
  AdminClient mute(loop_, path_);
  ASSERT_TRUE(turn_until(loop_, [&] { return server_->connection_count() == 2; }));
  AdminClient third(loop_, path_);
  ASSERT_TRUE(third.send(get("/hello")));
  EXPECT_FALSE(turn_until(
      loop_, [&] { return third.take(1) > 0; }, 2 * kAdminAcceptPause));
  silent.leave();
  EXPECT_EQ(status_of(third.reply()), 200);
}

TEST_F(AdminServerTest, process_without_descriptors_serves_later_and_does_not_spin) {
  open();
  AdminClient client(loop_, path_);
  ASSERT_TRUE(client.send(get("/hello")));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const FileDescriptor first_free(dup(0));
  const rlimit none{static_cast<rlim_t>(first_free.get()) + 1, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  int turns = 0;
  EXPECT_FALSE(turn_until(
      loop_, [&] { return ++turns, client.take(1) > 0; }, 2 * kAdminAcceptPause));
  EXPECT_LT(turns, 2000);  // a turn each 2 ms for the test's own timer
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(status_of(client.reply()), 200);
}

TEST_F(AdminServerTest, second_server_on_a_live_path_is_refused_and_the_first_goes_on) {
  open();
  const auto second = AdminServer::open(loop_, path_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error(), "admin socket " + path_ + ": another daemon listens there");
  EXPECT_EQ(status_of(ask(get("/hello"))), 200);
}

TEST_F(AdminServerTest, socket_of_a_dead_daemon_is_replaced) {
  {
    const FileDescriptor dead(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(bind(dead.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ASSERT_TRUE(std::filesystem::exists(path_));
  open();
  EXPECT_EQ(status_of(ask(get("/hello"))), 200);
}

TEST_F(AdminServerTest, file_that_is_no_socket_is_left_alone) {
  std::ofstream(path_) << "precious";
  const auto server = AdminServer::open(loop_, path_);
  ASSERT_FALSE(server.ok());
  EXPECT_THAT(server.error(), HasSubstr("not a socket"));
  EXPECT_EQ(std::filesystem::file_size(path_), 8U);
}

TEST_F(AdminServerTest, path_is_gone_after_the_server) {
  open();
  server_.reset();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(AdminServerTest, requests_are_counted_by_how_they_were_answered) {
  open();
  (void)ask(get("/hello"));
  (void)ask(get("/nothing"));
  server_->route("GET", "/forgotten", [](const AdminRequest&, const AdminReply&) {});
  (void)ask(get("/forgotten"));
  std::map<std::string, double> figures;
  server_->visit([&](const Metric& metric) { figures[std::string(metric.name)] = metric.value; });
  EXPECT_THAT(figures, testing::UnorderedElementsAre(testing::Pair("popgate_admin_requests", 3),
                                                     testing::Pair("popgate_admin_requests_refused", 1),
                                                     testing::Pair("popgate_admin_strangers_refused", 0),
                                                     testing::Pair("popgate_admin_requests_failed", 1)));
}

}  // namespace
}  // namespace popgate
