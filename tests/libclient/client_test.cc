// SPDX-License-Identifier: Apache-2.0
//
// The library through its C ABI, against the real daemon side of the worker socket.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <popgate/popgate.h>

#include <cstring>
#include <string>

#include "libclient/check/table_reader.h"
#include "tests/libclient/client_case.h"

namespace popgate {
namespace {

using std::chrono::seconds;

TEST_F(ClientTest, without_a_daemon_everything_passes_and_is_counted) {
  const ClientOwner client = open_client(socket_path_);
  const popgate_request request = request_from("192.0.2.1");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(popgate_check(client.get(), &request, nullptr), POPGATE_PASS);
  EXPECT_EQ(popgate_check_key(client.get(), "a", 1, "k", 1, nullptr), POPGATE_PASS);
  const popgate_statistics statistics = statistics_of(client);
  EXPECT_EQ(statistics.checks, 6U);
  EXPECT_EQ(statistics.checks_detached, 6U);
  EXPECT_EQ(statistics.checks_invalid, 0U);
  EXPECT_EQ(statistics.attached, 0U);
  EXPECT_EQ(popgate_file_descriptor(client.get()), -1);
}

TEST_F(ClientTest, attaches_by_itself_when_a_daemon_appears) {
  const ClientOwner client = open_client(socket_path_);
  popgate_tick(client.get());
  start_daemon({rule_for_all("all", numbers_[0])});
  ASSERT_TRUE(attach(client));
  EXPECT_GE(popgate_file_descriptor(client.get()), 0);
  ASSERT_EQ(daemon_->workers().status().size(), 1U);
  EXPECT_EQ(daemon_->workers().status()[0].pid, getpid());
}

TEST_F(ClientTest, a_passing_request_is_recorded_for_every_rule_it_falls_under_stamped_and_at_its_cost) {
  Rule heavy = rule_for_all("heavy", numbers_[1]);
  heavy.cost = 5;
  start_daemon({rule_for_all("all", numbers_[0]), heavy});
  const ClientOwner client = open_client(socket_path_);
  ASSERT_TRUE(attach(client));
  const popgate_request request = request_from("192.0.2.1");
  popgate_verdict verdict = POPGATE_VERDICT_INIT;
  const std::int64_t before = PopClock::now().time_since_epoch().count();
  EXPECT_EQ(popgate_check(client.get(), &request, &verdict), POPGATE_PASS);
  const std::int64_t after = PopClock::now().time_since_epoch().count();
  EXPECT_EQ(verdict.matched, 2U);
  EXPECT_EQ(verdict.blocked, 0);
  EXPECT_STREQ(verdict.rule, "");
  ASSERT_TRUE(hits_arrive(2));
  EXPECT_EQ(daemon_->hits()[0].rule, numbers_[0]);
  EXPECT_EQ(daemon_->hits()[0].cost, 1U);
  EXPECT_EQ(daemon_->hits()[1].rule, numbers_[1]);
  EXPECT_EQ(daemon_->hits()[1].cost, 5U);
  for (const Hit& hit : daemon_->hits()) {
    EXPECT_GE(hit.stamp_us, before);
    EXPECT_LE(hit.stamp_us, after);
  }
  EXPECT_EQ(statistics_of(client).hits_recorded, 6U);
}

TEST_F(ClientTest, a_mitigated_client_is_blocked_and_told_how_long_and_others_pass) {
  start_daemon({rule_for_all("all", numbers_[0])});
  const ClientOwner client = open_client(socket_path_);
  ASSERT_TRUE(attach(client));
  const popgate_request request = request_from("192.0.2.1");
  const Key key = key_of(client, request);
  table_.put(key, numbers_[0], milliseconds(59'500));

  popgate_verdict verdict = POPGATE_VERDICT_INIT;
  EXPECT_EQ(popgate_check(client.get(), &request, &verdict), POPGATE_BLOCK);
  EXPECT_EQ(verdict.blocked, 1);
  EXPECT_EQ(verdict.retry_after_s, 60U);  // 59.5 s, rounded up
  EXPECT_EQ(verdict.limit, 100U);
  EXPECT_EQ(verdict.window_ms, 60'000U);
  EXPECT_STREQ(verdict.rule, "all");
  EXPECT_EQ(std::string(verdict.key), key_text(key));
  EXPECT_EQ(statistics_of(client).blocked, 1U);

  const popgate_request other = request_from("192.0.2.2");
  EXPECT_EQ(popgate_check(client.get(), &other, &verdict), POPGATE_PASS);
  EXPECT_EQ(verdict.blocked, 0);
  EXPECT_STREQ(verdict.rule, "");
}

TEST_F(ClientTest, a_blocked_request_is_recorded_only_for_rules_that_count_all) {
  Rule counting = rule_for_all("counts all", numbers_[1]);
  counting.count = CountMode::kAll;
  start_daemon({rule_for_all("all", numbers_[0]), counting});
  const ClientOwner client = open_client(socket_path_);
  ASSERT_TRUE(attach(client));
  const popgate_request request = request_from("192.0.2.1");
  EXPECT_EQ(popgate_check(client.get(), &request, nullptr), POPGATE_PASS);
  ASSERT_TRUE(hits_arrive(2));
  table_.put(daemon_->hits()[0].key, numbers_[0], seconds(60));

  EXPECT_EQ(popgate_check(client.get(), &request, nullptr), POPGATE_BLOCK);
  ASSERT_TRUE(hits_arrive(3));
  EXPECT_EQ(daemon_->hits()[2].rule, numbers_[1]);
  EXPECT_EQ(statistics_of(client).hits_recorded, 3U);
}

TEST_F(ClientTest, a_rule_that_logs_passes_what_it_would_block_and_does_not_count_it) {
  Rule logging = rule_for_all("logs", numbers_[0]);
  logging.action = Action::kLog;
  start_daemon({logging, rule_for_all("all", numbers_[1])});
  const ClientOwner client = open_client(socket_path_);
  ASSERT_TRUE(attach(client));
  const popgate_request request = request_from("192.0.2.1");
  EXPECT_EQ(popgate_check(client.get(), &request, nullptr), POPGATE_PASS);
  ASSERT_TRUE(hits_arrive(2));
  table_.put(daemon_->hits()[0].key, numbers_[0], seconds(60), kTableFlagLogOnly);

  popgate_verdict verdict = POPGATE_VERDICT_INIT;
  EXPECT_EQ(popgate_check(client.get(), &request, &verdict), POPGATE_PASS);
  EXPECT_EQ(verdict.blocked, 0);
  EXPECT_EQ(verdict.would_block, 1);
  EXPECT_STREQ(verdict.rule, "logs");
  ASSERT_TRUE(hits_arrive(3));
  EXPECT_EQ(daemon_->hits()[2].rule, numbers_[1]);
  EXPECT_EQ(statistics_of(client).would_block, 1U);
  EXPECT_EQ(statistics_of(client).blocked, 0U);
}

TEST_F(ClientTest, an_operators_block_stops_the_request_under_a_rule_that_only_logs) {
  Rule logging = rule_for_all("logs", numbers_[0]);
  logging.action = Action::kLog;
  start_daemon({logging});
  const ClientOwner client = open_client(socket_path_);
  ASSERT_TRUE(attach(client));
  const popgate_request request = request_from("192.0.2.1");
  table_.put(key_of(client, request), numbers_[0], seconds(60), kTableFlagOperator);
  EXPECT_EQ(popgate_check(client.get(), &request, nullptr), POPGATE_BLOCK);
}

TEST_F(ClientTest, while_blocking_is_off_nothing_blocks_and_the_caller_sees_what_would) {
  start_daemon({rule_for_all("all", numbers_[0])});
  const ClientOwner client = open_client(socket_path_);
  ASSERT_TRUE(attach(client));
  const popgate_request request = request_from("192.0.2.1");
  const Key key = key_of(client, request);
  for (const std::uint8_t flags : {std::uint8_t{0}, kTableFlagOperator}) {
    table_.put(key, numbers_[0], milliseconds(59'500), flags);
    ASSERT_EQ(popgate_check(client.get(), &request, nullptr), POPGATE_BLOCK);
    table_.turn_off(true);
    popgate_verdict verdict = POPGATE_VERDICT_INIT;
    EXPECT_EQ(popgate_check(client.get(), &request, &verdict), POPGATE_PASS);
    EXPECT_EQ(verdict.blocked, 0);
    EXPECT_EQ(verdict.would_block, 1);
    EXPECT_STREQ(verdict.rule, "all");
    EXPECT_EQ(verdict.retry_after_s, 60U);
    table_.turn_off(false);
  }
  EXPECT_EQ(statistics_of(client).would_block, 2U);
  EXPECT_EQ(statistics_of(client).blocked, 2U);
  daemon_->pump();
  EXPECT_EQ(daemon_->hits().size(), 1U) << "as under action: log, the hits of a mitigated client do not count";
}

TEST_F(ClientTest, every_judged_request_is_counted_and_what_a_rule_with_a_fuse_blocks_or_would) {
  Rule fused = rule_for_all("fused", numbers_[0]);
  fused.max_blocked_share = 30;
  start_daemon({fused, rule_for_all("plain", numbers_[1])});
  const ClientOwner client = open_client(socket_path_);
  ASSERT_TRUE(attach(client));
  const popgate_request request = request_from("192.0.2.1");
  ASSERT_EQ(popgate_check(client.get(), &request, nullptr), POPGATE_PASS);
  ASSERT_TRUE(hits_arrive(2));
  const Key key = daemon_->hits()[0].rule == numbers_[0] ? daemon_->hits()[0].key : daemon_->hits()[1].key;
  // An operator's block is not the rule's doing; a block, a log and a brake are.
  for (const std::uint8_t flags : {kTableFlagOperator, std::uint8_t{0}, kTableFlagLogOnly}) {
    table_.put(key, numbers_[0], seconds(60), flags);
    (void)popgate_check(client.get(), &request, nullptr);
  }
  table_.turn_off(true);
  (void)popgate_check(client.get(), &request, nullptr);
  (void)popgate_peek(client.get(), &request, nullptr);
  const RequestTotals& totals = daemon_->workers().requests();
  EXPECT_EQ(totals.requests, 5U);
  EXPECT_EQ(totals.would_block, (std::map<RuleNumber, std::uint64_t>{{numbers_[0], 3}}));
}

TEST_F(ClientTest, the_verdict_names_the_blocking_rule_that_ends_last) {
  Rule logging = rule_for_all("logs longest", numbers_[2]);
  logging.action = Action::kLog;
  start_daemon({rule_for_all("short", numbers_[0]), rule_for_all("long", numbers_[1]), logging});
  const ClientOwner client = open_client(socket_path_);
  ASSERT_TRUE(attach(client));
  const popgate_request request = request_from("192.0.2.1");
  EXPECT_EQ(popgate_check(client.get(), &request, nullptr), POPGATE_PASS);
  ASSERT_TRUE(hits_arrive(3));
  table_.put(daemon_->hits()[0].key, numbers_[0], seconds(10));
  table_.put(daemon_->hits()[1].key, numbers_[1], milliseconds(29'900));
  table_.put(daemon_->hits()[2].key, numbers_[2], seconds(300), kTableFlagLogOnly);
  popgate_verdict verdict = POPGATE_VERDICT_INIT;
  EXPECT_EQ(popgate_check(client.get(), &request, &verdict), POPGATE_BLOCK);
  EXPECT_STREQ(verdict.rule, "long");
  EXPECT_EQ(verdict.retry_after_s, 30U);
  EXPECT_EQ(verdict.would_block, 1);
}

TEST_F(ClientTest, a_throttled_key_passes_at_its_share) {
  start_daemon({rule_for_all("all", numbers_[0])});
  const ClientOwner client = open_client(socket_path_);
  ASSERT_TRUE(attach(client));
  const popgate_request request = request_from("192.0.2.1");
  table_.put(key_of(client, request), numbers_[0], seconds(60), 0, 64);
  int passed = 0;
  for (int i = 0; i < 10'000; ++i) passed += popgate_check(client.get(), &request, nullptr) == POPGATE_PASS ? 1 : 0;
  // 64 of 256 of 10,000: 2,500; six standard deviations are 260.
  EXPECT_NEAR(passed, 2500, 260);
}

TEST_F(ClientTest, blocks_go_on_and_end_on_time_after_the_daemon_died) {
  start_daemon({rule_for_all("all", numbers_[0])});
  const ClientOwner client = open_client(socket_path_);
  ASSERT_TRUE(attach(client));
  const popgate_request request = request_from("192.0.2.1");
  const Key key = key_of(client, request);
  const HostInstant put = HostClock::now();
  table_.put(key, numbers_[0], milliseconds(400));
  ASSERT_TRUE(detach(client));
  EXPECT_EQ(popgate_check(client.get(), &request, nullptr), POPGATE_BLOCK);
  while (popgate_check(client.get(), &request, nullptr) == POPGATE_BLOCK) {
    ASSERT_LT(HostClock::now() - put, seconds(10));
    usleep(1000);
  }
  EXPECT_GE(HostClock::now() - put, milliseconds(400));
  EXPECT_EQ(statistics_of(client).checks_detached, 0U);
}

TEST_F(ClientTest, hits_made_while_no_daemon_runs_reach_the_next_one) {
  start_daemon({rule_for_all("all", numbers_[0])});
  const ClientOwner client = open_client(socket_path_);
  ASSERT_TRUE(attach(client));
  ASSERT_TRUE(detach(client));
  const popgate_request request = request_from("192.0.2.1");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(popgate_check(client.get(), &request, nullptr), POPGATE_PASS);
  start_daemon({rule_for_all("all", numbers_[0])});
  ASSERT_TRUE(attach(client, 2));
  EXPECT_TRUE(hits_arrive(100));
  EXPECT_EQ(daemon_->hits().size(), 100U);
}

TEST_F(ClientTest, takes_over_new_rules_and_keeps_what_is_blocked) {
  start_daemon({rule_for_all("all", numbers_[0])});
  const ClientOwner client = open_client(socket_path_);
  ASSERT_TRUE(attach(client));
  const popgate_request request = request_from("192.0.2.1");
  table_.put(key_of(client, request), numbers_[0], seconds(60));
  Rule raised = rule_for_all("all", numbers_[0]);
  raised.limit = 777;
  popgate_verdict verdict = POPGATE_VERDICT_INIT;
  daemon_->use_rules({raised});
  EXPECT_TRUE(daemon_->pump_until([&] {
    popgate_tick(client.get());
    return popgate_check(client.get(), &request, &verdict) == POPGATE_BLOCK && verdict.limit == 777;
  }));
  EXPECT_EQ(statistics_of(client).attaches, 1U);
}

TEST_F(ClientTest, closing_hands_the_hits_in_the_ring_to_the_daemon) {
  start_daemon({rule_for_all("all", numbers_[0])});
  ClientOwner client = open_client(socket_path_);
  ASSERT_TRUE(attach(client));
  const popgate_request request = request_from("192.0.2.1");
  for (int i = 0; i < 3000; ++i) EXPECT_EQ(popgate_check(client.get(), &request, nullptr), POPGATE_PASS);
  client.reset();
  EXPECT_TRUE(hits_arrive(3000));
  EXPECT_TRUE(daemon_->pump_until([&] { return daemon_->workers().status().empty(); }));
  EXPECT_EQ(ledger_->row(numbers_[0])[LedgerColumn::kDrained], 3000U);
}

TEST_F(ClientTest, a_full_ring_drops_the_newest_and_both_sides_agree_how_many) {
  start_daemon({rule_for_all("all", numbers_[0])});
  popgate_options options = POPGATE_OPTIONS_INIT;
  options.ring_slots = 1024;
  const ClientOwner client = open_client(socket_path_, &options);
  ASSERT_TRUE(attach(client));
  const popgate_request request = request_from("192.0.2.1");
  for (int i = 0; i < 1500; ++i) EXPECT_EQ(popgate_check(client.get(), &request, nullptr), POPGATE_PASS);
  EXPECT_EQ(statistics_of(client).hits_recorded, 1024U);
  EXPECT_EQ(statistics_of(client).hits_dropped, 476U);
  EXPECT_TRUE(daemon_->pump_until([&] {
    const LedgerRow row = ledger_->row(numbers_[0]);
    return row[LedgerColumn::kDrained] == 1024 && row[LedgerColumn::kRingDropped] == 476;
  }));
}

TEST_F(ClientTest, a_caller_that_matches_itself_is_blocked_by_its_own_keys) {
  start_daemon({rule_for_all("all", numbers_[0])});
  const ClientOwner client = open_client(socket_path_);
  ASSERT_TRUE(attach(client));
  EXPECT_EQ(popgate_check_key(client.get(), "all", 3, "user 7", 6, nullptr), POPGATE_PASS);
  ASSERT_TRUE(hits_arrive(1));
  table_.put(daemon_->hits()[0].key, numbers_[0], seconds(60));
  EXPECT_EQ(popgate_check_key(client.get(), "all", 3, "user 7", 6, nullptr), POPGATE_BLOCK);
  EXPECT_EQ(popgate_check_key(client.get(), "all", 3, "user 8", 6, nullptr), POPGATE_PASS);
  EXPECT_EQ(popgate_check_key(client.get(), "nobody's", 8, "user 7", 6, nullptr), POPGATE_PASS);
  EXPECT_EQ(statistics_of(client).checks_invalid, 1U);
}

TEST_F(ClientTest, looking_on_gives_the_verdict_and_records_nothing) {
  start_daemon({rule_for_all("all", numbers_[0])});
  const ClientOwner client = open_client(socket_path_);
  ASSERT_TRUE(attach(client));
  const popgate_request request = request_from("192.0.2.1");
  EXPECT_EQ(popgate_peek(client.get(), &request, nullptr), POPGATE_PASS);
  table_.put(key_of(client, request), numbers_[0], seconds(60));
  popgate_verdict verdict = POPGATE_VERDICT_INIT;
  EXPECT_EQ(popgate_peek(client.get(), &request, &verdict), POPGATE_BLOCK);
  EXPECT_STREQ(verdict.rule, "all");
  EXPECT_EQ(statistics_of(client).hits_recorded, 1U);
  EXPECT_EQ(statistics_of(client).blocked, 0U);
}

TEST_F(ClientTest, arguments_that_are_wrong_pass_and_are_counted) {
  const ClientOwner client = open_client(socket_path_);
  popgate_request request = request_from("192.0.2.1");
  EXPECT_EQ(popgate_check(client.get(), nullptr, nullptr), POPGATE_PASS);
  request.struct_bytes = 8;
  EXPECT_EQ(popgate_check(client.get(), &request, nullptr), POPGATE_PASS);
  request = request_from("192.0.2.1");
  request.path = nullptr;
  EXPECT_EQ(popgate_check(client.get(), &request, nullptr), POPGATE_PASS);
  request = request_from("192.0.2.1");
  request.client.bytes = 5;
  EXPECT_EQ(popgate_check(client.get(), &request, nullptr), POPGATE_PASS);
  request = request_from("192.0.2.1");
  popgate_verdict verdict = POPGATE_VERDICT_INIT;
  verdict.struct_bytes = 0;
  EXPECT_EQ(popgate_check(client.get(), &request, &verdict), POPGATE_PASS);
  EXPECT_EQ(statistics_of(client).checks_invalid, 5U);
  EXPECT_EQ(statistics_of(client).checks, 5U);
  EXPECT_EQ(popgate_check(nullptr, &request, nullptr), POPGATE_PASS);
  EXPECT_EQ(popgate_tick(nullptr), POPGATE_INVALID);
  popgate_close(nullptr);
}

TEST_F(ClientTest, opening_refuses_what_it_cannot_mean) {
  popgate_client* client = nullptr;
  EXPECT_EQ(popgate_open(nullptr, nullptr, &client), POPGATE_INVALID);
  EXPECT_EQ(popgate_open("", nullptr, &client), POPGATE_INVALID);
  EXPECT_EQ(popgate_open(std::string(108, 'x').c_str(), nullptr, &client), POPGATE_INVALID);
  EXPECT_EQ(popgate_open("/nowhere", nullptr, nullptr), POPGATE_INVALID);
  popgate_options options = POPGATE_OPTIONS_INIT;
  options.ring_slots = 1025;
  EXPECT_EQ(popgate_open("/nowhere", &options, &client), POPGATE_INVALID);
  options.ring_slots = 512;
  EXPECT_EQ(popgate_open("/nowhere", &options, &client), POPGATE_INVALID);
  options.struct_bytes = 1;
  EXPECT_EQ(popgate_open("/nowhere", &options, &client), POPGATE_INVALID);
  EXPECT_EQ(client, nullptr);
}

TEST_F(ClientTest, a_check_from_within_a_check_passes_and_is_counted) {
  Rule by_header = rule_for_all("by header", numbers_[0]);
  by_header.key = {{KeyPart::kHeader, "x-user", 32, 64}};
  start_daemon({by_header});
  const ClientOwner client = open_client(socket_path_);
  ASSERT_TRUE(attach(client));
  popgate_request request = request_from("192.0.2.1");
  request.header = [](void* context, const char*, std::size_t, const char** value, std::size_t* value_bytes) {
    auto* const same = static_cast<popgate_client*>(context);
    const popgate_request inner = request_from("192.0.2.9");
    EXPECT_EQ(popgate_check(same, &inner, nullptr), POPGATE_PASS);
    popgate_tick(same);
    *value = "u";
    *value_bytes = 1;
    return 1;
  };
  request.header_context = client.get();
  EXPECT_EQ(popgate_check(client.get(), &request, nullptr), POPGATE_PASS);
  EXPECT_EQ(statistics_of(client).checks_invalid, 1U);
  EXPECT_EQ(statistics_of(client).hits_recorded, 1U);
}

}  // namespace
}  // namespace popgate
