// SPDX-License-Identifier: Apache-2.0
//
// The library while the PoP's hash secret changes, through its C ABI and against the real daemon side.
#include <gtest/gtest.h>
#include <popgate/popgate.h>

#include <cstring>
#include <memory>

#include "tests/libclient/daemon_side.h"

namespace popgate {
namespace {

using std::chrono::seconds;

popgate_request request_from_a_client() {
  popgate_request request = POPGATE_REQUEST_INIT;
  request.method = "GET";
  request.method_bytes = 3;
  request.path = "/";
  request.path_bytes = 1;
  EXPECT_EQ(popgate_parse_address("192.0.2.1", 9, &request.client), POPGATE_OK);
  return request;
}

class TwoSecrets : public testing::Test {
 protected:
  TwoSecrets() : ledger_(Ledger::in_memory()), rule_(rule_for_all("all", *ledger_->number_for(101))) {}
  ~TwoSecrets() override { popgate_close(client_); }

  void start(SecondSecret use) {
    daemon_ = std::make_unique<DaemonSide>(directory_.file("workers.sock"), *ledger_, table_);
    daemon_->use_rules({rule_}, {secret_of_byte(1), secret_of_byte(2), use});
    popgate_options options = POPGATE_OPTIONS_INIT;
    ASSERT_EQ(popgate_open(directory_.file("workers.sock").c_str(), &options, &client_), POPGATE_OK);
    ASSERT_TRUE(daemon_->pump_until([&] {
      (void)popgate_tick(client_);
      return statistics().attached == 1;
    }));
  }
  [[nodiscard]] popgate_statistics statistics() const {
    popgate_statistics statistics = POPGATE_STATISTICS_INIT;
    EXPECT_EQ(popgate_get_statistics(client_, &statistics), POPGATE_OK);
    return statistics;
  }
  /// The client's key under the secret, made without the library.
  [[nodiscard]] Key key_under(std::uint8_t byte) const {
    Rule rule = rule_;
    identify(rule);
    Key key;
    std::string reason;
    EXPECT_TRUE(key_of_values(rule, secret_of_byte(byte), {"192.0.2.1"}, key, reason)) << reason;
    return key;
  }
  popgate_result check(popgate_verdict* verdict = nullptr) { return popgate_check(client_, &request_, verdict); }
  [[nodiscard]] bool hits_arrive(std::size_t count) {
    return daemon_->pump_until([&] { return daemon_->hits().size() >= count; });
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Ledger> ledger_;
  DaemonSide::Table table_;
  std::unique_ptr<DaemonSide> daemon_;
  Rule rule_;
  popgate_client* client_ = nullptr;
  popgate_request request_ = request_from_a_client();
};

TEST_F(TwoSecrets, a_passing_request_is_recorded_under_the_present_and_the_next_one) {
  start(SecondSecret::kCounted);
  EXPECT_EQ(check(), POPGATE_PASS);
  ASSERT_TRUE(hits_arrive(2));
  EXPECT_EQ(daemon_->hits()[0].key, key_under(1));
  EXPECT_EQ(daemon_->hits()[1].key, key_under(2));
  EXPECT_EQ(daemon_->hits()[0].stamp_us, daemon_->hits()[1].stamp_us);
  EXPECT_EQ(statistics().hits_recorded, 2U);
  EXPECT_EQ(statistics().checks, 1U);
}

TEST_F(TwoSecrets, under_the_former_one_nothing_is_recorded) {
  start(SecondSecret::kChecked);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(check(), POPGATE_PASS);
  ASSERT_TRUE(hits_arrive(3));
  for (const Hit& hit : daemon_->hits()) EXPECT_EQ(hit.key, key_under(1));
  EXPECT_EQ(statistics().hits_recorded, 3U);
}

TEST_F(TwoSecrets, what_is_blocked_under_either_is_blocked_and_then_counts_under_neither) {
  for (const SecondSecret use : {SecondSecret::kCounted, SecondSecret::kChecked}) {
    for (const std::uint8_t byte : {std::uint8_t{1}, std::uint8_t{2}}) {
      popgate_close(std::exchange(client_, nullptr));
      daemon_.reset();
      start(use);
      table_.put(key_under(byte), rule_.number, milliseconds(59'900));
      popgate_verdict verdict = POPGATE_VERDICT_INIT;
      EXPECT_EQ(popgate_peek(client_, &request_, &verdict), POPGATE_BLOCK);
      EXPECT_EQ(check(&verdict), POPGATE_BLOCK);
      EXPECT_EQ(verdict.matched, 1U);
      EXPECT_EQ(verdict.key, key_text(key_under(byte))) << "what popgatectl explain takes";
      EXPECT_EQ(verdict.retry_after_s, 60U);
      EXPECT_EQ(statistics().hits_recorded, 0U);
      table_.clear();
    }
  }
}

TEST_F(TwoSecrets, of_two_blocks_the_one_that_ends_last_is_told) {
  start(SecondSecret::kCounted);
  table_.put(key_under(1), rule_.number, seconds(10));
  table_.put(key_under(2), rule_.number, milliseconds(29'900));
  popgate_verdict verdict = POPGATE_VERDICT_INIT;
  EXPECT_EQ(check(&verdict), POPGATE_BLOCK);
  EXPECT_EQ(verdict.retry_after_s, 30U);
}

TEST_F(TwoSecrets, a_block_under_the_second_of_a_rule_that_counts_all_is_recorded_under_both) {
  rule_.count = CountMode::kAll;
  start(SecondSecret::kCounted);
  table_.put(key_under(2), rule_.number, seconds(60));
  EXPECT_EQ(check(), POPGATE_BLOCK);
  EXPECT_TRUE(hits_arrive(2));
}

TEST_F(TwoSecrets, a_callers_own_keys_are_checked_and_recorded_under_both) {
  start(SecondSecret::kCounted);
  EXPECT_EQ(popgate_check_key(client_, "all", 3, "me", 2, nullptr), POPGATE_PASS);
  ASSERT_TRUE(hits_arrive(2));
  EXPECT_NE(daemon_->hits()[0].key, daemon_->hits()[1].key);
  table_.put(daemon_->hits()[1].key, rule_.number, seconds(60));
  EXPECT_EQ(popgate_check_key(client_, "all", 3, "me", 2, nullptr), POPGATE_BLOCK);
  EXPECT_EQ(popgate_check_key(client_, "all", 3, "you", 3, nullptr), POPGATE_PASS);
}

// Two daemons' keys for one client: a worker that gets its new rules goes on where the old ones were.
TEST_F(TwoSecrets, a_client_blocked_under_the_old_secret_stays_blocked_while_workers_change_over) {
  start(SecondSecret::kNone);
  table_.put(key_under(1), rule_.number, seconds(60));
  EXPECT_EQ(check(), POPGATE_BLOCK);
  for (const HashSecrets& step : {HashSecrets(secret_of_byte(1), secret_of_byte(2), SecondSecret::kCounted),
                                  HashSecrets(secret_of_byte(2), secret_of_byte(1), SecondSecret::kChecked)}) {
    daemon_->use_rules({rule_}, step);
    for (int i = 0; i < 50; ++i) {
      daemon_->pump();
      (void)popgate_tick(client_);
      ASSERT_EQ(check(), POPGATE_BLOCK);
    }
  }
  EXPECT_EQ(statistics().hits_recorded, 0U);
  daemon_->use_rules({rule_}, secret_of_byte(2));
  EXPECT_TRUE(daemon_->pump_until([&] {
    (void)popgate_tick(client_);
    return check() == POPGATE_PASS;
  })) << "without the old secret its keys mean nothing";
}

}  // namespace
}  // namespace popgate
