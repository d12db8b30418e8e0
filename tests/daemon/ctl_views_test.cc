// SPDX-License-Identifier: Apache-2.0
//
// What people read, for answers written out by hand as docs/admin-api.md has them.
#include "daemon/ctl_views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <time.h>

#include <nlohmann/json.hpp>

#include "daemon/ctl_explain.h"
#include "daemon/ctl_fields.h"

namespace popgate {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kKey = "0123456789abcdef0123456789abcdef";

json automatic_entry() {
  return {{"key", kKey},
          {"kind", "automatic"},
          {"rule", "login"},
          {"remaining_ms", 252'000},
          {"until", "2001-09-09T01:50:52.000Z"},
          {"decided_by", "fra-2"},
          {"decided_at", "2001-09-09T01:40:52.000Z"},
          {"reason", ""},
          {"enforced", true},
          {"evidence", {{"lo", 11}, {"estimate", 11.7}, {"hi", 13}, {"limit", 10}}}};
}

json lift_entry() {
  json entry = automatic_entry();
  entry["kind"] = "lift";
  entry["rule"] = nullptr;
  entry["reason"] = "office";
  entry["enforced"] = false;
  return entry;
}

json explanation() {
  return {
      {"node", "fra-1"},
      {"key", kKey},
      {"rule", "login"},
      {"enforced",
       {{"until", "2001-09-09T01:50:52.000Z"}, {"remaining_ms", 252'000}, {"log_only", false}, {"by_operator", false}}},
      {"entries", json::array({automatic_entry()})},
      {"slots",
       {{{"slot", 99},
         {"from", "2001-09-09T01:46:30.000Z"},
         {"to", "2001-09-09T01:46:40.000Z"},
         {"known", 12},
         {"unsent", 1},
         {"hidden", 0}}}},
      {"rate", {{"lo", 12}, {"estimate", 12.5}, {"hi", nullptr}}},
      {"limit", 10},
      {"window_ms", 60'000}};
}

class CtlViewsTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TZ", "CET-1", 1);
    tzset();
  }
  // 2001-09-09 01:46:40 UTC, 02:46:40 here.
  const ViewContext context_{PopInstant(std::chrono::seconds(1'000'000'000)), "popgatectl --socket /s", 0};
};

TEST_F(CtlViewsTest, explanation_of_a_block_says_until_when_by_whom_on_what_and_how_to_end_it) {
  EXPECT_EQ(explain_view(Fields(explanation()), context_),
            "Key 0123456789abcdef0123456789abcdef, rule login\n"
            "\n"
            "BLOCKED on node fra-1 until 02:50:52 CET (4m 12s from now).\n"
            "\n"
            "Why:\n"
            "  - Rule login decided it on node fra-2 at 02:40:52 CET: about 11.7 (at least 11, at most 13) hits in 1m, "
            "where 10 pass. Until 02:50:52 CET (4m 12s from now).\n"
            "\n"
            "Hits in 1m, as this node last read them: about 12.5 (at least 12; how many at most is not "
            "known); 10 pass.\n"
            "\n"
            "  SLOT      FROM        TO  KNOWN  UNSENT  HIDDEN\n"
            "    99  02:46:30  02:46:40     12       1       0\n"
            "\n"
            "To end it on every node:    popgatectl --socket /s lift 0123456789abcdef0123456789abcdef\n");
}

TEST_F(CtlViewsTest, explanation_of_a_log_rule_does_not_say_blocked) {
  json logged = explanation();
  logged["enforced"]["log_only"] = true;
  EXPECT_THAT(explain_view(Fields(logged), context_), HasSubstr("NOT BLOCKED, only logged, on node fra-1 until"));
}

TEST_F(CtlViewsTest, explanation_of_an_operators_block_gives_the_reason) {
  json blocked = explanation();
  blocked["enforced"]["by_operator"] = true;
  blocked["entries"][0]["kind"] = "operator";
  blocked["entries"][0]["reason"] = "ticket 7\x1b[2J";
  const std::string text = explain_view(Fields(blocked), context_);
  EXPECT_THAT(text, HasSubstr("(4m 12s from now), by an operator.\n"));
  EXPECT_THAT(text, HasSubstr("An operator on node fra-2 at 02:40:52 CET blocked it: \"ticket 7\\x1b[2J\"."));
}

TEST_F(CtlViewsTest, explanation_of_a_lifted_key_says_so) {
  json lifted = explanation();
  lifted["enforced"] = nullptr;
  lifted["entries"] = json::array({lift_entry()});
  const std::string text = explain_view(Fields(lifted), context_);
  EXPECT_THAT(text, HasSubstr("NOT BLOCKED on node fra-1.\n"));
  EXPECT_THAT(text, HasSubstr("lifted it: \"office\". Hits before that do not count.\n"));
  EXPECT_THAT(text, HasSubstr("To block it on every node:  popgatectl --socket /s block " + std::string(kKey)));
}

TEST_F(CtlViewsTest, explanation_of_an_entry_that_is_not_enforced_says_why_not) {
  json changed = explanation();
  changed["enforced"] = nullptr;
  changed["entries"][0]["enforced"] = false;
  EXPECT_THAT(explain_view(Fields(changed), context_), HasSubstr("Not enforced here: "));
}

TEST_F(CtlViewsTest, explanation_of_an_unknown_key_says_that_nothing_is_known) {
  const json nothing{
      {"key", kKey},     {"rule", nullptr}, {"enforced", nullptr}, {"entries", json::array()}, {"slots", json::array()},
      {"rate", nullptr}, {"limit", nullptr}};
  const std::string text = explain_view(Fields(nothing), context_);
  EXPECT_THAT(text, HasSubstr("NOT BLOCKED on this node.\n"));
  EXPECT_THAT(text, HasSubstr("explain RULE VALUE... instead"));
  EXPECT_THAT(text, Not(HasSubstr("Why")));
}

TEST_F(CtlViewsTest, explanation_without_slots_says_that_nothing_is_counted) {
  json idle = explanation();
  idle["slots"] = json::array();
  const std::string text = explain_view(Fields(idle), context_);
  EXPECT_THAT(text, HasSubstr("This node counts nothing for it now"));
  EXPECT_THAT(text, Not(HasSubstr("as this node last read them")));
}

TEST_F(CtlViewsTest, mitigations_are_a_table_that_says_how_to_see_the_rest) {
  const json answer{{"total", 3}, {"mitigations", {automatic_entry(), lift_entry()}}};
  EXPECT_EQ(mitigations_view(Fields(answer), context_),
            "KEY                               RULE   KIND       REMAINING  UNTIL (CET)  BY           HITS  HERE      "
            "REASON\n"
            "0123456789abcdef0123456789abcdef  login  automatic     4m 12s     02:50:52  fra-2  11.7 of 10  enforced\n"
            "0123456789abcdef0123456789abcdef  -      lift          4m 12s     02:50:52  fra-2           -  no        "
            "office\n"
            "\n"
            "2 of 3 shown; --offset 2 shows the next ones.\n");
}

TEST_F(CtlViewsTest, what_was_decided_without_counters_says_so) {
  json entry = automatic_entry();
  entry["evidence"]["under"] = "local";
  EXPECT_THAT(mitigations_view(Fields(json{{"total", 1}, {"mitigations", json::array({entry})}}), context_),
              HasSubstr("11.7 of 10 (local)"));
  json told = explanation();
  told["entries"] = json::array({entry});
  told["degraded"] = true;
  told["on_counter_failure"] = "local";
  const std::string text = explain_view(Fields(told), context_);
  EXPECT_THAT(text, HasSubstr("judged its own hits against its share"));
  EXPECT_THAT(text, HasSubstr("Its shard cannot be counted on now"));
  entry["evidence"]["under"] = "counters";
  EXPECT_THAT(mitigations_view(Fields(json{{"total", 1}, {"mitigations", json::array({entry})}}), context_),
              Not(HasSubstr("(counters)")));
}

TEST_F(CtlViewsTest, status_names_both_rings_while_the_shards_change) {
  const json counters{{"kind", "memcached"},
                      {"ring", "0000aaaa"},
                      {"shards", {{{"name", "a"}, {"reachable", true}, {"degraded", true}}}},
                      {"also_read", {{"ring", "0000bbbb"}, {"shards", json::array()}}}};
  const std::string text = status_view(Fields(json{{"counters", counters}}), context_);
  EXPECT_THAT(text, HasSubstr("1 of 1 shards reachable, ring 0000aaaa, also read: ring 0000bbbb"));
  EXPECT_THAT(text, HasSubstr("reachable, DEGRADED"));
}

TEST_F(CtlViewsTest, no_mitigations_are_none) {
  EXPECT_EQ(mitigations_view(Fields(json{{"total", 0}, {"mitigations", json::array()}}), context_), "None.\n");
}

TEST_F(CtlViewsTest, status_shows_what_is_not_ready_first) {
  const json status{
      {"version", "0.1.0"},
      {"node", "fra-1"},
      {"pop", "fra"},
      {"pid", 42},
      {"started_at", "2001-09-09T01:45:10.000Z"},
      {"ready", false},
      {"not_ready", {"shard cache-2 is not connected"}},
      {"secrets", {{{"id", "00000000000000dd"}, {"counted", true}}, {{"id", "00000000000000ee"}, {"counted", false}}}},
      {"rules", {{"count", 3}, {"revision", "00000000000000aa"}}},
      {"workers",
       {{{"name", "nginx-1"},
         {"pid", 7},
         {"uid", 33},
         {"leaving", false},
         {"waiting", 0},
         {"drained", 1000},
         {"dropped", 5},
         {"rejected", 0}}}},
      {"mitigations", {{"enforced", 12}, {"capacity", 262144}}},
      {"counters",
       {{"kind", "memcached"},
        {"shards",
         {{{"name", "cache-1"}, {"address", "127.0.0.1:1"}, {"reachable", true}},
          {{"name", "cache-2"}, {"address", "127.0.0.1:2"}, {"reachable", false}}}}}},
      {"mesh",
       {{"listen", "127.0.0.1:7"},
        {"peers", 2},
        {"connected", 2},
        {"coverage", 0.9999},
        {"certificate",
         {{"name", "popgate://fra/fra-1"},
          {"valid_until", "2001-09-09T03:46:40.000Z"},
          {"left_ms", 7200000},
          {"alarm", "it ends"}}}}}};
  EXPECT_EQ(status_view(Fields(status), context_),
            "popgated 0.1.0, node fra-1 of PoP fra: NOT READY\n"
            "  ! shard cache-2 is not connected\n"
            "  started      02:45:10 CET, 1m 30s ago, pid 42\n"
            "  rules        3, revision 00000000000000aa\n"
            "  mitigations  12 enforced, room for 262144\n"
            "  counters     memcached, 1 of 2 shards reachable\n"
            "  secrets      00000000000000dd (counted), 00000000000000ee (checked only)\n"
            "  mesh         2 of 2 peers connected, coverage 99.9 %, listening on 127.0.0.1:7\n"
            "  certificate  popgate://fra/fra-1, valid until 04:46:40 CET, 2h left\n"
            "  ! it ends\n"
            "\n"
            "SHARD    ADDRESS      STATE\n"
            "cache-1  127.0.0.1:1  reachable\n"
            "cache-2  127.0.0.1:2  NOT REACHABLE\n"
            "\n"
            "WORKER   PID  UID  STATE     WAITING  DRAINED  DROPPED  REJECTED\n"
            "nginx-1    7   33  attached        0     1000        5         0\n");
}

TEST_F(CtlViewsTest, rules_show_their_account_and_throttles) {
  const json hits{{"recorded", 21}, {"delivered", 15}, {"uncertain", 1}, {"dropped", 1},
                  {"expired", 1},   {"lost", 1},       {"pending", 2}};
  const json answer{{"rules",
                     {{{"name", "login"},
                       {"enabled", true},
                       {"limit", 10},
                       {"window_ms", 60'000},
                       {"mitigate_ms", 0},
                       {"action", "block"},
                       {"count", "allowed"},
                       {"policy", "estimate"},
                       {"enforced", 2},
                       {"hits", hits}}}},
                    {"former_rules", {{{"number", 4}, {"id", "00000000000000bb"}, {"hits", hits}}}}};
  const std::string text = rules_view(Fields(answer), context_);
  EXPECT_THAT(text, HasSubstr("throttle  block   allowed  estimate         2        21         15          1        1"
                              "        1     1        2\n"));
  EXPECT_THAT(text, HasSubstr("(gone) 00000000000000bb"));
}

TEST_F(CtlViewsTest, peers_show_what_differs) {
  const json answer{{"coverage", 0.5},
                    {"peers",
                     {{{"node", "fra-2"},
                       {"address", "127.0.0.1:9"},
                       {"state", "connected"},
                       {"since_ms", 61'000},
                       {"unacknowledged", 3},
                       {"skew_ms", 1.5},
                       {"round_trip_ms", 0.2},
                       {"digest_equal", false},
                       {"rules_equal", true},
                       {"members_equal", true},
                       {"brakes_equal", true},
                       {"not_enforced", 7},
                       {"secrets", {{{"id", "00000000000000dd"}, {"counted", true}}}},
                       {"counts_alike", false},
                       {"certificate", {{"valid_until", "2001-09-10T03:46:40Z"}, {"left_ms", 93'600'000}}},
                       {"heard", false},
                       {"last_error", ""},
                       {"enforced_ms", {{"p50", 1}, {"p99", 4}, {"max", 9}}},
                       {"frames_sent", 10},
                       {"bytes_sent", 900}}}}};
  const std::string text = peers_view(Fields(answer), context_);
  EXPECT_THAT(text, HasSubstr("50 % of the peers have acknowledged everything."));
  EXPECT_THAT(text,
              HasSubstr("connected  1m 1s  NO           3  1.5ms  0.2ms  DIFFER   equal  equal    equal         7  "
                        "00000000000000dd COUNTED APART  1d 2h !      1/4/9ms"));
}

TEST_F(CtlViewsTest, peers_show_how_long_their_certificates_last) {
  const auto shown = [&](const json& certificate) {
    return peers_view(Fields(json{{"peers", {{{"node", "fra-2"}, {"certificate", certificate}}}}}), context_);
  };
  constexpr std::int64_t kTwoWeeksMs = std::int64_t{14} * 24 * 3600 * 1000;
  EXPECT_THAT(shown({{"left_ms", kTwoWeeksMs}}), AllOf(HasSubstr("  14d"), Not(HasSubstr("!"))));
  EXPECT_THAT(shown({{"left_ms", kTwoWeeksMs - 1}}), HasSubstr("14d !"));
  EXPECT_THAT(shown({{"left_ms", -5}}), HasSubstr("EXPIRED"));
  EXPECT_THAT(shown(nullptr), Not(HasSubstr("EXPIRED"))) << "nobody knows";
}

TEST_F(CtlViewsTest, ring_that_disagrees_says_so_for_each_shard_and_what_to_do) {
  const json differing{{"name", "a"}, {"agreeing", 700}, {"differing", 300}, {"unreachable", 0}, {"fault", ""}};
  const json unreachable{{"name", "b"}, {"agreeing", 0}, {"differing", 0}, {"unreachable", 9}, {"fault", "time-out"}};
  const json answer{{"agrees", false}, {"through_proxy", true}, {"shards", json::array({differing, unreachable})}};
  const std::string text = ring_check_view(Fields(answer), context_);
  EXPECT_THAT(text, HasSubstr("SHARD  AGREEING  DIFFERING  UNREACHABLE  FAULT\n"
                              "a           700        300            0\n"
                              "b             0          0            9  time-out\n"));
  EXPECT_THAT(text, HasSubstr("THEY DO NOT AGREE"));
  EXPECT_THAT(text, HasSubstr("popgated --print-nutcracker"));
  EXPECT_FALSE(ring_agrees(Fields(answer)));
}

TEST_F(CtlViewsTest, status_warns_of_mitigations_without_room_or_record) {
  const auto shown = [&](const json& mitigations) {
    return status_view(Fields(json{{"ready", true}, {"mitigations", mitigations}}), context_);
  };
  EXPECT_THAT(shown({{"no_room", 3}, {"not_recorded", 0}}), HasSubstr("  ! 3 mitigations find no room"));
  EXPECT_THAT(shown({{"no_room", 0}, {"not_recorded", 1200}}), HasSubstr("  ! 1200 mitigations are not recorded"));
  EXPECT_THAT(shown({{"no_room", 0}, {"not_recorded", 0}}), Not(HasSubstr("  ! ")));
  EXPECT_THAT(shown({{"enforced", 1}}), Not(HasSubstr("  ! "))) << "an older daemon";
}

TEST_F(CtlViewsTest, ring_with_a_shard_that_is_away_is_not_said_to_disagree) {
  const json agreeing{{"name", "a"}, {"agreeing", 128}, {"differing", 0}, {"unreachable", 0}, {"fault", ""}};
  const json away{{"name", "b"}, {"agreeing", 0}, {"differing", 0}, {"unreachable", 128}, {"fault", "refused"}};
  const json answer{{"agrees", false}, {"through_proxy", true}, {"shards", json::array({agreeing, away})}};
  const std::string text = ring_check_view(Fields(answer), context_);
  EXPECT_THAT(text, HasSubstr("NOT KNOWN for every shard"));
  EXPECT_THAT(text, Not(HasSubstr("--print-nutcracker"))) << "nutcracker's configuration is not at fault";
}

// The daemon may be older or newer than the tool.
TEST_F(CtlViewsTest, absent_and_odd_fields_are_shown_as_unknown) {
  const json odd{{"mitigations", {{{"key", 7}, {"remaining_ms", "x"}, {"until", 3}, {"evidence", "x"}}, 5}},
                 {"peers", {{{"node", nullptr}, {"enforced_ms", "x"}, {"since_ms", 1e300}}}},
                 {"rules", {{{"limit", "many"}}}},
                 {"entries", json::array({json::object()})},
                 {"enforced", "yes"},
                 {"slots", json::array({json::object()})},
                 {"rate", "x"}};
  for (const auto view : {status_view, peers_view, rules_view, mitigations_view, explain_view, block_view, lift_view,
                          reload_view, ring_check_view}) {
    EXPECT_NE(view(Fields(odd), context_), "");
    EXPECT_NE(view(Fields(json::object()), context_), "");
    EXPECT_NE(view(Fields(json(5)), context_), "");
  }
}

}  // namespace
}  // namespace popgate
