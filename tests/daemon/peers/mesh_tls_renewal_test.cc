// SPDX-License-Identifier: Apache-2.0
// Certificates and CAs are replaced under a live mesh; what is no longer trusted is cut.
#include <event2/event.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/daemon/peers/tls_pop.h"

namespace popgate {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;

class MeshTlsRenewalTest : public ::testing::Test {
 protected:
  TlsPop pop{{"a", "b", "c"}};

  void start_settled() {
    pop.start_all();
    ASSERT_TRUE(pop.run_until([&] { return pop.settled(); }));
    at_start_ = 0;
    at_start_ = losses();
  }
  /// Since start_settled(): while nodes start, the first ones dial in vain.
  [[nodiscard]] std::uint64_t losses() {
    std::uint64_t sum = 0;
    for (const char* name : {"a", "b", "c"}) {
      for (const PeerStatus& peer : pop.node(name).mesh->status().peers) sum += peer.losses;
    }
    return sum - at_start_;
  }
  void renew(const std::string& node, const TestCa& by, const std::string& ca_pem) {
    const Status used = pop.node(node).tls->use(pop.credentials(node, by.issue_to("test", node), ca_pem));
    EXPECT_TRUE(used) << used.error();
  }
  /// A decision on each node reaches the others.
  void expect_news_spreads(std::uint64_t seed) {
    for (const char* name : {"a", "b", "c"}) {
      const Key key{seed, static_cast<std::uint64_t>(*name)};
      pop.node(name).decide(key);
      EXPECT_TRUE(pop.run_until(
          [&] { return pop.node("a").blocks(key) && pop.node("b").blocks(key) && pop.node("c").blocks(key); }));
    }
  }
  /// `node` starts again, so that every connection to and from it shakes hands anew.
  void start_again(const std::string& node) {
    pop.start(node);
    ASSERT_TRUE(pop.run_until([&] { return pop.settled(); }));
  }

 private:
  std::uint64_t at_start_ = 0;
};

TEST_F(MeshTlsRenewalTest, new_certificates_of_the_same_ca_count_for_new_handshakes_and_cut_nothing) {
  start_settled();
  for (const char* name : {"a", "b", "c"}) {
    renew(name, pop.ca, pop.ca.pem());
    expect_news_spreads(static_cast<std::uint64_t>(*name));
  }
  EXPECT_EQ(losses(), 0U);
  EXPECT_EQ(pop.node("a").figure("popgate_peers_certificate_renewals"), 1);
  start_again("a");
  expect_news_spreads(9);
}

TEST_F(MeshTlsRenewalTest, a_ca_is_replaced_in_three_steps_without_a_lost_connection) {
  const TestCa next("the next CA");
  start_settled();
  for (const char* name : {"a", "b", "c"}) renew(name, pop.ca, pop.ca.pem() + next.pem());
  for (const char* name : {"a", "b", "c"}) renew(name, next, pop.ca.pem() + next.pem());
  expect_news_spreads(1);
  EXPECT_EQ(losses(), 0U);
  // Connections that were made under the old CA end with it, and come back under the new one.
  for (const char* name : {"a", "b", "c"}) renew(name, next, next.pem());
  ASSERT_TRUE(pop.run_until([&] { return losses() > 0 && pop.settled(); }));
  expect_news_spreads(2);
  const std::uint64_t cut = losses();
  for (const char* name : {"a", "b", "c"}) renew(name, next, next.pem());
  expect_news_spreads(3);
  EXPECT_EQ(losses(), cut) << "all of them are of the new CA now";
}

TEST_F(MeshTlsRenewalTest, a_peer_of_a_removed_ca_is_cut_and_stays_out) {
  const TestCa next("the next CA");
  pop.use_tls("a", pop.credentials("a", next.issue_to("test", "a"), pop.ca.pem() + next.pem()));
  for (const char* name : {"b", "c"}) {
    pop.use_tls(name, pop.credentials(name, pop.ca.issue_to("test", name), pop.ca.pem() + next.pem()));
  }
  start_settled();
  renew("a", next, next.pem());
  ASSERT_TRUE(pop.run_until([&] { return !pop.node("a").peer("b").heard && !pop.node("a").peer("b").up_to_date; }));
  EXPECT_THAT(pop.node("a").peer("b").last_error, HasSubstr("unknown CA: found \"popgate://test/b\""));
  EXPECT_GE(pop.node("a").figure("popgate_peers_tls_failures", "unknown_ca"), 4) << "both directions of two peers";
  EXPECT_TRUE(pop.node("b").peer("c").up_to_date) << "the others are not disturbed";
}

TEST_F(MeshTlsRenewalTest, a_certificate_that_expires_on_a_live_connection_ends_it) {
  const PopInstant end = PopClock::now() + hours(2);
  pop.use_tls("b", pop.credentials("b", pop.ca.issue({.names = "URI:popgate://test/b", .until = end})));
  start_settled();
  MeshNode& a = pop.node("a");
  a.reactor.wall_offset = hours(3);  // the timer finds out
  ASSERT_TRUE(pop.run_until([&] { return !a.peer("b").up_to_date && !a.peer("b").heard; }));
  EXPECT_THAT(a.peer("b").last_error, HasSubstr("expired certificate: found \"popgate://test/b\""));
  EXPECT_TRUE(a.peer("c").up_to_date);
  a.reactor.wall_offset = hours(0);
  ASSERT_TRUE(pop.run_until([&] { return pop.settled(); }));
}

TEST_F(MeshTlsRenewalTest, a_reload_judges_at_once) {
  const PopInstant end = PopClock::now() + hours(2);
  pop.use_tls("b", pop.credentials("b", pop.ca.issue({.names = "URI:popgate://test/b", .until = end})));
  start_settled();
  MeshNode& a = pop.node("a");
  a.reactor.wall_offset = hours(3);
  ASSERT_TRUE(a.tls->use(a.tls->credentials()));
  EXPECT_EQ(a.figure("popgate_peers_tls_failures", "expired"), 0) << "nothing ends within a call";
  event_base_loop(pop.base(), EVLOOP_NONBLOCK);
  EXPECT_GE(a.figure("popgate_peers_tls_failures", "expired"), 2) << "both directions";
}

TEST_F(MeshTlsRenewalTest, a_clock_that_is_set_back_cuts_nobody) {
  start_settled();
  MeshNode& a = pop.node("a");
  a.reactor.wall_offset = -hours(24);  // before every certificate's first hour
  ASSERT_TRUE(a.tls->use(a.tls->credentials()));
  expect_news_spreads(1);
  EXPECT_EQ(losses(), 0U);
}

TEST_F(MeshTlsRenewalTest, an_expired_certificate_does_not_replace_a_valid_one) {
  start_settled();
  const PopInstant now = PopClock::now();
  const auto expired = pop.credentials(
      "a", pop.ca.issue({.names = "URI:popgate://test/a", .from = now - hours(2), .until = now - hours(1)}));
  const Status used = pop.node("a").tls->use(expired);
  EXPECT_FALSE(used);
  EXPECT_THAT(used.error(), HasSubstr("has expired at"));
  EXPECT_THAT(used.error(), HasSubstr("the one that is in use stays"));
  EXPECT_GT(pop.node("a").figure("popgate_peers_certificate_left"), 3600);
  start_again("a");
}

TEST_F(MeshTlsRenewalTest, a_peers_end_is_known_after_its_renewal_too_and_while_it_is_away) {
  const PopInstant end = std::chrono::floor<std::chrono::seconds>(PopClock::now() + hours(48));
  pop.use_tls("b", pop.credentials("b", pop.ca.issue({.names = "URI:popgate://test/b", .until = end})));
  start_settled();
  const auto told = [&](PopInstant until) { return pop.node("a").peer("b").certificate_until == until; };
  ASSERT_TRUE(pop.run_until([&] { return told(end); }));
  EXPECT_LE(pop.node("a").peer("b").certificate_left, microseconds(hours(48)));
  EXPECT_GT(pop.node("a").peer("b").certificate_left, microseconds(hours(47)));
  EXPECT_LE(pop.node("a").figure("popgate_peers_peer_certificate_left", "b"), 48 * 3600);
  EXPECT_GT(pop.node("a").figure("popgate_peers_peer_certificate_left", "b"), 47 * 3600);
  const PopInstant later = end + hours(24);
  ASSERT_TRUE(
      pop.node("b").tls->use(pop.credentials("b", pop.ca.issue({.names = "URI:popgate://test/b", .until = later}))));
  ASSERT_TRUE(pop.run_until([&] { return told(later); }));
  EXPECT_EQ(losses(), 0U) << "over the connection that was there";
  pop.kill("b");
  ASSERT_TRUE(pop.run_until([&] { return !pop.node("a").peer("b").heard; }));
  EXPECT_TRUE(told(later));
}

TEST_F(MeshTlsRenewalTest, how_long_the_own_certificate_lasts_is_a_figure_and_an_alarm) {
  const PopInstant now = PopClock::now();
  pop.use_tls("a", pop.credentials("a", pop.ca.issue({.names = "URI:popgate://test/a", .until = now + hours(48)})));
  const CertificateStatus status = pop.node("a").tls->status();
  EXPECT_EQ(status.name, "popgate://test/a");
  EXPECT_NEAR(static_cast<double>(std::chrono::floor<std::chrono::seconds>(status.left).count()), 48 * 3600, 60);
  EXPECT_THAT(status.alarm, HasSubstr("expires at"));
  pop.node("a").reactor.wall_offset = hours(49);
  EXPECT_LT(pop.node("a").tls->status().left, hours(0));
  EXPECT_THAT(pop.node("a").tls->status().alarm, HasSubstr("has expired at"));
}

}  // namespace
}  // namespace popgate
