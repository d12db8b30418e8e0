// SPDX-License-Identifier: Apache-2.0
#include "daemon/peers/wire.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "daemon/mitigate/precedence.h"
#include "daemon/peers/frame.h"
#include "tests/daemon/mitigate/samples.h"

namespace popgate::wire {
namespace {

template <typename Kind>
Kind round_trip(const Kind& kind) {
  const auto decoded = decode(encode(Message(kind)));
  EXPECT_TRUE(decoded) << decoded.error();
  return std::get<Kind>(*decoded);
}

Entry sample_entry() {
  Entry entry;
  entry.sequence = 42;
  entry.host = HostInstant(seconds(77));
  entry.in_snapshot = true;
  entry.remaining = minutes(9);
  Mitigation& m = entry.mitigation;
  m.space = Space::kOperator;
  m.key = kClient;
  m.rule = 7;
  m.rule_revision = 8;
  m.version = {1, 2, 3, 4};
  m.until_wall = kWallNow + minutes(9);
  m.decided_at = kWallNow;
  m.decided_by = "a";
  m.reason = std::string("not \xff UTF-8 \0", 12);
  m.evidence = {1, 2.5, 3, 4};
  return entry;
}

TEST(Wire, an_entry_arrives_as_it_was_sent) {
  const Entry sent = sample_entry();
  const Entry got = round_trip(sent);
  EXPECT_EQ(got.sequence, sent.sequence);
  EXPECT_EQ(got.host, sent.host);
  EXPECT_TRUE(got.in_snapshot);
  EXPECT_EQ(got.remaining, sent.remaining);
  EXPECT_EQ(got.mitigation.until_wall, sent.mitigation.until_wall);
  EXPECT_EQ(got.mitigation.version, sent.mitigation.version);
  EXPECT_TRUE(std::is_eq(precedence(got.mitigation, sent.mitigation)));
  EXPECT_EQ(entry_hash(got.mitigation), entry_hash(sent.mitigation));
}

TEST(Wire, an_unknown_hi_stays_unknown_and_a_zero_stays_zero) {
  Entry sent = sample_entry();
  sent.mitigation.evidence.hi.reset();
  EXPECT_FALSE(round_trip(sent).mitigation.evidence.hi);
  sent.mitigation.evidence.hi = 0;
  EXPECT_EQ(round_trip(sent).mitigation.evidence.hi, 0U);
}

TEST(Wire, the_label_of_a_decision_without_counters_arrives_and_an_unknown_one_is_still_one) {
  Entry sent = sample_entry();
  sent.mitigation.evidence.under = DecidedUnder::kClosed;
  EXPECT_EQ(round_trip(sent).mitigation.evidence.under, DecidedUnder::kClosed);
  sent.mitigation.evidence.under = static_cast<DecidedUnder>(77);
  EXPECT_EQ(round_trip(sent).mitigation.evidence.under, DecidedUnder::kLocal);
}

TEST(Wire, what_is_not_counted_yet_arrives_with_a_heartbeat_within_bounds) {
  Heartbeat sent;
  const CountLag lag{.ring = 0xabcd,
                     .shards = {{.shard = 3, .waiting = seconds(4)},
                                {.shard = 200, .uncertain_most = 7, .uncertain_until = kWallNow + seconds(9)}}};
  sent.count_lag = lag;
  EXPECT_EQ(round_trip(sent).count_lag, lag);
  sent.count_lag->shards[0] = {.waiting = 10 * kRemainingMax, .uncertain_most = UINT64_MAX};
  const Heartbeat got = round_trip(sent);
  EXPECT_EQ(got.count_lag->shards[0].waiting, kRemainingMax);
  EXPECT_EQ(got.count_lag->shards[0].uncertain_most, kUncertainMax);
  sent.count_lag->shards.resize(kLaggingShardsMax + 1);
  EXPECT_FALSE(decode(encode(sent)));
}

TEST(Wire, a_lift_arrives_as_a_lift) {
  Entry sent = sample_entry();
  sent.mitigation.lifted = true;
  EXPECT_TRUE(round_trip(sent).mitigation.lifted);
}

TEST(Wire, a_hello_arrives_as_it_was_sent) {
  const Hello sent{1, 3, "pop", "node", 5, 6, 7, {"a", "node"}, HostInstant(seconds(9)), {{6, true}, {8, false}}};
  const Hello got = round_trip(sent);
  EXPECT_EQ(got.version_min, 1U);
  EXPECT_EQ(got.version_max, 3U);
  EXPECT_EQ(got.pop, "pop");
  EXPECT_EQ(got.node, "node");
  EXPECT_EQ(got.incarnation, 5U);
  EXPECT_EQ(got.secret_id, 6U);
  EXPECT_EQ(got.rules_revision, 7U);
  EXPECT_EQ(got.members, sent.members);
  EXPECT_EQ(got.host, sent.host);
  EXPECT_EQ(got.secrets, sent.secrets);
}

TEST(Wire, a_hello_with_more_secrets_than_any_node_has_is_refused) {
  Hello hello;
  hello.secrets.resize(kSecretsMax);
  EXPECT_TRUE(decode(encode(hello)));
  hello.secrets.resize(kSecretsMax + 1);
  EXPECT_EQ(decode(encode(hello)).error(), "hello.secrets: found 9, allowed: at most 8");
}

TEST(Wire, heartbeats_acks_and_ends_arrive_as_they_were_sent) {
  Digest digest;
  digest.add(kClient, 99);
  const Heartbeat beat = round_trip(Heartbeat{HostInstant(seconds(1)), kWallNow, 3, 4, digest, std::nullopt});
  EXPECT_EQ(beat.host, HostInstant(seconds(1)));
  EXPECT_EQ(beat.wall, kWallNow);
  EXPECT_EQ(beat.sequence, 3U);
  EXPECT_EQ(beat.rules_revision, 4U);
  EXPECT_EQ(beat.digest, digest);
  EXPECT_FALSE(round_trip(Heartbeat{}).digest);
  Heartbeat renewed;
  renewed.certificate_until = kWallNow;
  EXPECT_EQ(round_trip(renewed).certificate_until, kWallNow);
  EXPECT_FALSE(round_trip(Heartbeat{}).certificate_until);
  const Ack ack = round_trip(Ack{5, HostInstant(seconds(2)), kWallNow, 6, 7});
  EXPECT_EQ(ack.sequence, 5U);
  EXPECT_EQ(ack.echoed, HostInstant(seconds(2)));
  EXPECT_EQ(ack.wall, kWallNow);
  EXPECT_EQ(ack.rules_revision, 6U);
  EXPECT_EQ(ack.resend_buckets, 7U);
  const SnapshotEnd end = round_trip(SnapshotEnd{8, HostInstant(seconds(3)), kAllBuckets, digest});
  EXPECT_EQ(end.sequence, 8U);
  EXPECT_EQ(end.buckets, kAllBuckets);
  EXPECT_EQ(end.digest, digest);
  EXPECT_EQ(round_trip(Refused{"no"}).reason, "no");
  (void)round_trip(Goodbye{});
}

TEST(Wire, brakes_and_figures_arrive_as_they_were_sent) {
  const Brake brake{7, true, {8, 9}, BrakeOrigin::kFuse, kWallNow, "node", "fuse: 60 % of the requests"};
  EXPECT_EQ(round_trip(Brakes{{brake, Brake{}}}).brakes, (std::vector{brake, Brake{}}));
  Heartbeat beat;
  EXPECT_FALSE(round_trip(beat).figures);
  beat.figures = NodeFigures{1, 2, 3, {{4, 5}}};
  const Heartbeat got = round_trip(beat);
  ASSERT_TRUE(got.figures);
  EXPECT_EQ(got.figures->brakes_digest, 1U);
  EXPECT_EQ(got.figures->not_enforced, 2U);
  EXPECT_EQ(got.figures->requests, 3U);
  ASSERT_EQ(got.figures->rules.size(), 1U);
  EXPECT_EQ(got.figures->rules[0].rule, 4U);
  EXPECT_EQ(got.figures->rules[0].would_block, 5U);
}

TEST(Wire, brakes_beyond_a_limit_are_refused_and_a_full_message_fits_a_frame) {
  Brake longest{7,
                true,
                {8, 9},
                BrakeOrigin::kFuse,
                kWallNow,
                std::string(kNameBytesMax, 'n'),
                std::string(kReasonBytesMax, 'r')};
  const std::string full = encode(Brakes{std::vector(kBrakesInMessageMax, longest)});
  EXPECT_LE(full.size(), kFrameBytesMax);
  EXPECT_TRUE(decode(full));
  EXPECT_FALSE(decode(encode(Brakes{std::vector(kBrakesInMessageMax + 1, longest)})));
  longest.reason += 'r';
  EXPECT_FALSE(decode(encode(Brakes{{longest}})));
  Heartbeat beat;
  beat.figures = NodeFigures{1, 2, 3, std::vector<RuleFigures>(kRuleFiguresMax + 1)};
  EXPECT_FALSE(decode(encode(beat)));
}

TEST(Wire, unknown_kinds_and_unknown_fields_are_skipped) {
  const auto unknown = decode(std::string("\xfa\x07\x00", 3));  // field 127, an empty message
  ASSERT_TRUE(unknown);
  EXPECT_TRUE(std::holds_alternative<UnknownKind>(*unknown));
  const auto extended = decode(encode(Message(Refused{"no"})) + std::string("\xf8\x07\x05", 3));  // field 127 = 5
  ASSERT_TRUE(extended);
  EXPECT_EQ(std::get<Refused>(*extended).reason, "no");
}

TEST(Wire, truncated_messages_are_refused_or_lack_what_was_cut_but_never_pass_for_the_whole) {
  const std::string whole = encode(Message(sample_entry()));
  for (std::size_t bytes = 1; bytes < whole.size(); ++bytes) EXPECT_FALSE(decode(whole.substr(0, bytes))) << bytes;
}

TEST(Wire, what_breaks_a_limit_is_refused_with_field_found_and_allowed) {
  Entry entry = sample_entry();
  entry.mitigation.reason = std::string(kReasonBytesMax + 1, 'x');
  EXPECT_EQ(decode(encode(Message(entry))).error(), "entry.reason bytes: found 257, allowed: at most 256");
  entry = sample_entry();
  entry.mitigation.decided_by = std::string(kNameBytesMax + 1, 'x');
  EXPECT_FALSE(decode(encode(Message(entry))));
  for (const double estimate : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    entry = sample_entry();
    entry.mitigation.evidence.estimate = estimate;
    EXPECT_FALSE(decode(encode(Message(entry)))) << estimate;
  }
  Hello hello;
  hello.node = std::string(kNameBytesMax + 1, 'x');
  EXPECT_FALSE(decode(encode(Message(hello))));
  hello.node = "a";
  hello.members.assign(kMembersMax + 1, "m");
  EXPECT_FALSE(decode(encode(Message(hello))));
}

TEST(Wire, durations_and_instants_are_cut_to_where_sums_cannot_overflow) {
  Entry entry = sample_entry();
  entry.remaining = microseconds::max();
  entry.host = HostInstant(microseconds::min());
  const Entry got = round_trip(entry);
  EXPECT_EQ(got.remaining, kRemainingMax);
  EXPECT_GT(got.host.time_since_epoch(), microseconds::min() / 2);
}

}  // namespace
}  // namespace popgate::wire
