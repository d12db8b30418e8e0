// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/config_options.h"
#include "tests/daemon/config_case.h"

namespace popgate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ConfigFaults, all_are_told_in_one_go) {
  EXPECT_THAT(faults("node: -x\n"
                     "flush_interval: 50\n"
                     "table_entries: 1000\n"
                     "rules:\n"
                     "  - name: a\n"
                     "    key: []\n"
                     "    limit: 0\n"
                     "    window: 60\n"
                     "  - name: a\n"
                     "    key: [client]\n"
                     "    limit: 1\n"
                     "    window: 1s\n"
                     "    mitigate: 15d\n"),
              ElementsAre("1:7 node", "2:17 flush_interval", "3:16 table_entries", "5:5 rules[0].mitigate",
                          "6:10 rules[0].key", "7:12 rules[0].limit", "8:13 rules[0].window", "9:11 rules[1].name",
                          "10:11 rules[1].key[0]", "13:15 rules[1].mitigate"));
}

TEST(ConfigFaults, a_fault_tells_file_line_column_field_found_and_allowed) {
  EXPECT_EQ(
      fault(rule_with("    mitigate: 60\n")),
      "f:6:15: rules[0].mitigate: found \"60\", allowed: a number with its unit (ms, s, m, h, d), 0s to 14d, 0, or "
      "at least 100ms");
  EXPECT_EQ(fault("counters: 7\nhash_secret_file: s\n"), "f:1:11: counters: found \"7\", allowed: a map of fields");
  EXPECT_EQ(fault("log_level: loud"),
            "f:1:12: log_level: found \"loud\", allowed: trace, debug, info, warning, error, critical, off");
}

TEST(ConfigFaults, an_unknown_field_comes_with_the_nearest_known_one) {
  EXPECT_EQ(fault(rule_with(kMitigate + "    polcy: estimate\n")),
            "f:7:5: rules[0]: found the unknown field \"polcy\", allowed: did you mean policy?");
  EXPECT_EQ(fault("countres:\n"), "f:1:1: found the unknown field \"countres\", allowed: did you mean counters?");
  EXPECT_THAT(fault(rule_with(kMitigate + "    match: {query: x}\n")), HasSubstr("allowed: host, path, method"));
}

TEST(ConfigFaults, a_field_that_comes_twice_is_refused) {
  EXPECT_THAT(faults("node: a\nnode: b\n"), ElementsAre("2:1 node"));
  EXPECT_THAT(faults(rule_with(kMitigate + "    limit: 11\n")), ElementsAre("7:5 rules[0].limit"));
}

TEST(ConfigFaults, two_rules_of_one_name_are_refused) {
  EXPECT_EQ(fault("rules:\n  - &r {name: a, key: [host], limit: 1, window: 1s, mitigate: 1s}\n  - *r\n"),
            "f:2:15: rules[1].name: found \"a\", allowed: a name of its own: line 2 has this one already");
}

TEST(ConfigFaults, what_is_not_yaml_is_refused_with_its_place) {
  EXPECT_THAT(faults("rules: [\n"), ElementsAre("2:1 "));
  EXPECT_THAT(faults("a: b: c\n"), ElementsAre("1:5 "));
  EXPECT_THAT(faults("a: *b\n"), ElementsAre("1:4 "));
  EXPECT_THAT(fault("node: a\n---\nnode: b\n"), HasSubstr("a second document"));
  EXPECT_THAT(fault(std::string(2000, '[')), HasSubstr("what is not YAML"));
  EXPECT_THAT(fault("a: &a [*a]\n"), HasSubstr("an alias that contains itself"));
}

TEST(ConfigFaults, usual_slips_in_yaml_come_with_what_to_write_instead) {
  constexpr const char* kTab = "allowed: spaces before the first word of a line, no tab";
  EXPECT_THAT(fault("\tnode: a\n"), HasSubstr(kTab));
  EXPECT_THAT(fault("rules:\n\t- name: a\n"), HasSubstr(kTab));
  EXPECT_THAT(fault("mesh:\n\tlisten: x\n"), HasSubstr(kTab));
  EXPECT_THAT(fault(rule_with(kMitigate + "  \tpolicy: certain\n")), HasSubstr(kTab));
  EXPECT_THAT(fault(rule_with(kMitigate + "    match: {host: *.example.com}\n")),
              HasSubstr("allowed: quotes around what begins with '*'"));
  constexpr const char* kColumn = "allowed: all fields of one map in one column, each with a space after its colon";
  EXPECT_THAT(fault("node:a\npop: b\n"), HasSubstr(kColumn));
  EXPECT_THAT(fault("rules:\n  - name: a\n   limit: 1\n"), HasSubstr(kColumn));
  EXPECT_THAT(fault("rules:\n  - name: a\n      limit: 1\n"), HasSubstr(kColumn));
}

TEST(ConfigFaults, a_list_or_word_in_the_place_of_a_map_is_refused) {
  EXPECT_THAT(faults("- node: a\n"), ElementsAre("1:1 "));
  EXPECT_THAT(faults("rules: x\n"), ElementsAre("1:8 rules"));
  EXPECT_THAT(faults("rules: [x]\n"), ElementsAre("1:9 rules[0]"));
  EXPECT_THAT(faults("? [node]\n: a\n"), ElementsAre("1:3 "));
  EXPECT_THAT(faults("node: [a]\n"), ElementsAre("1:7 node"));
}

struct Refusal {
  const char* lines;
  const char* place;
};

class RefusedRule : public testing::TestWithParam<Refusal> {};
TEST_P(RefusedRule, is_told_with_its_place) {
  EXPECT_THAT(faults(rule_with(GetParam().lines)), ElementsAre(GetParam().place)) << GetParam().lines;
}
INSTANTIATE_TEST_SUITE_P(
    ConfigFaults, RefusedRule,
    testing::Values(
        Refusal{"    mitigate: 60\n", "6:15 rules[0].mitigate"},
        Refusal{"    mitigate: 50ms\n", "6:15 rules[0].mitigate"},
        Refusal{"    mitigate: 14d1h\n", "6:15 rules[0].mitigate"},
        Refusal{"    mitigate: -1s\n", "6:15 rules[0].mitigate"},
        Refusal{"    mitigate: 337h\n", "6:15 rules[0].mitigate"},
        Refusal{"    mitigate: 1s\n    cost: 11\n", "7:11 rules[0].cost"},
        Refusal{"    mitigate: 1s\n    cost: 0\n", "7:11 rules[0].cost"},
        Refusal{"    mitigate: 1s\n    cost: 10001\n", "7:11 rules[0].cost"},
        Refusal{"    mitigate: 1s\n    cost: 1.5\n", "7:11 rules[0].cost"},
        Refusal{"    mitigate: 1s\n    slots: 0\n", "7:12 rules[0].slots"},
        Refusal{"    mitigate: 1s\n    slots: 61\n", "7:12 rules[0].slots"},
        Refusal{"    mitigate: 1s\n    action: deny\n", "7:13 rules[0].action"},
        Refusal{"    mitigate: 1s\n    count: none\n", "7:12 rules[0].count"},
        Refusal{"    mitigate: 1s\n    policy: sure\n", "7:13 rules[0].policy"},
        Refusal{"    mitigate: 1s\n    on_counter_failure: shut\n", "7:25 rules[0].on_counter_failure"},
        Refusal{"    mitigate: 1s\n    policy: certain\n    on_counter_failure: closed\n",
                "8:25 rules[0].on_counter_failure"},
        Refusal{"    mitigate: 1s\n    max_blocked_share: 0\n", "7:24 rules[0].max_blocked_share"},
        Refusal{"    mitigate: 1s\n    max_blocked_share: 100\n", "7:24 rules[0].max_blocked_share"},
        Refusal{"    mitigate: 1s\n    max_blocked_share: 0.3\n", "7:24 rules[0].max_blocked_share"},
        Refusal{"    mitigate: 1s\n    enabled: yes\n", "7:14 rules[0].enabled"},
        Refusal{"    mitigate: 1s\n    match: [GET]\n", "7:12 rules[0].match"},
        Refusal{"    mitigate: 1s\n    match: {method: \"G T\"}\n", "7:21 rules[0].match.method"},
        Refusal{"    mitigate: 1s\n    match: {method: []}\n", "7:21 rules[0].match.method"},
        Refusal{"    mitigate: 1s\n    match: {method: [GET, get]}\n", "7:27 rules[0].match.method"},
        Refusal{"    mitigate: 1s\n    match: {host: Example.com}\n", "7:19 rules[0].match.host"},
        Refusal{"    mitigate: 1s\n    match: {host: \"example.com:80\"}\n", "7:19 rules[0].match.host"},
        Refusal{"    mitigate: 1s\n    match: {host: \"a.*.com\"}\n", "7:19 rules[0].match.host"},
        Refusal{"    mitigate: 1s\n    match: {host: \"*\"}\n", "7:19 rules[0].match.host"},
        Refusal{"    mitigate: 1s\n    match: {host: \"*.\"}\n", "7:19 rules[0].match.host"},
        Refusal{"    mitigate: 1s\n    match: {host: \"b\xc3\xbc.de\"}\n", "7:19 rules[0].match.host"},
        Refusal{"    mitigate: 1s\n    match: {host: \"[::1\"}\n", "7:19 rules[0].match.host"},
        Refusal{"    mitigate: 1s\n    match: {path: login}\n", "7:19 rules[0].match.path"},
        Refusal{"    mitigate: 1s\n    match: {path: /a/../b}\n", "7:19 rules[0].match.path"},
        Refusal{"    mitigate: 1s\n    match: {path: \"/%61\"}\n", "7:19 rules[0].match.path"},
        Refusal{"    mitigate: 1s\n    match: {path: {exact: \"/a?b\"}}\n", "7:27 rules[0].match.path.exact"},
        Refusal{"    mitigate: 1s\n    match: {path: {glob: /a}}\n", "7:26 rules[0].match.path.glob"},
        Refusal{"    mitigate: 1s\n    match: {path: {glob: \"//?*\"}}\n", "7:26 rules[0].match.path.glob"},
        Refusal{"    mitigate: 1s\n    match: {path: {exact: /a, prefix: /b}}\n", "7:19 rules[0].match.path"},
        Refusal{"    mitigate: 1s\n    match: {path: {}}\n", "7:19 rules[0].match.path"}));

class RefusedKey : public testing::TestWithParam<Refusal> {};
TEST_P(RefusedKey, is_told_with_its_place) {
  const std::string text = "rules:\n  - name: r\n    limit: 10\n    window: 60s\n    mitigate: 1s\n";
  EXPECT_THAT(faults(text + GetParam().lines), ElementsAre(GetParam().place)) << GetParam().lines;
}
INSTANTIATE_TEST_SUITE_P(
    ConfigFaults, RefusedKey,
    testing::Values(Refusal{"    key: client_ip\n", "6:10 rules[0].key"}, Refusal{"    key: []\n", "6:10 rules[0].key"},
                    Refusal{"    key: [ip]\n", "6:11 rules[0].key[0]"},
                    Refusal{"    key: [host, host]\n", "6:17 rules[0].key[1]"},
                    Refusal{"    key: [{header: a}, {header: A}]\n", "6:24 rules[0].key[1]"},
                    Refusal{"    key: [{header: \"a b\"}]\n", "6:20 rules[0].key[0].header"},
                    Refusal{"    key: [{cookie: }]\n", "6:11 rules[0].key[0].cookie"},
                    Refusal{"    key: [{header: a, cookie: b}]\n", "6:11 rules[0].key[0]"},
                    Refusal{"    key: [{heder: a}]\n", "6:12 rules[0].key[0]"},
                    Refusal{"    key: [{client_ip: {v4_prefix: 33}}]\n", "6:35 rules[0].key[0].client_ip.v4_prefix"},
                    Refusal{"    key: [{client_ip: {v6_prefix: 0}}]\n", "6:35 rules[0].key[0].client_ip.v6_prefix"},
                    Refusal{"    key: [client_ip, {client_ip: {v4_prefix: 8}}]\n", "6:22 rules[0].key[1]"}));

TEST(ConfigFaults, an_unknown_policy_is_told_what_is_allowed) {
  EXPECT_THAT(fault(rule_with(kMitigate + "    policy: sure\n")), HasSubstr("estimate, certain, cautious"));
}

std::string window_of(const std::string& window, const std::string& slots) {
  return "rules:\n  - {name: r, key: [host], limit: 1, mitigate: 1s, window: " + window + ", slots: " + slots + "}\n";
}

// D is 20 ms by default: a slot of 4 D, 80 ms, is the shortest; 6 of them are 480 ms.
TEST(ConfigFaults, a_slot_shorter_than_four_times_the_clock_tolerance_is_refused) {
  good(window_of("480ms", "6"));
  EXPECT_THAT(fault(window_of("479ms", "6")), HasSubstr("at least 480ms"));
  EXPECT_THAT(faults(window_of("479ms", "6")), ElementsAre("2:60 rules[0].window"));
  good("clock_tolerance: 10ms\n" + window_of("479ms", "6"));
}

// 30 days are 2,592,000 s. With one slot, W + W + 2 * 0.02 s + 10 s + 1 s, rounded up, must fit.
TEST(ConfigFaults, a_window_that_memcached_cannot_hold_is_refused) {
  good(window_of("1295994s", "1"));
  EXPECT_THAT(faults(window_of("1295995s", "1")), ElementsAre("2:60 rules[0].window"));
  EXPECT_THAT(faults(window_of("30d", "60")), ElementsAre("2:60 rules[0].window"));
  good(window_of("29d", "60"));
}

TEST(ConfigFaults, names_over_63_bytes_or_with_odd_characters_are_refused) {
  const auto named = [](const std::string& name) {
    return faults("rules:\n  - {name: \"" + name + "\", key: [host], limit: 1, mitigate: 1s, window: 1s}\n");
  };
  EXPECT_THAT(named(std::string(63, 'n')), IsEmpty());
  for (const std::string& name : {std::string(64, 'n'), std::string("a b"), std::string("-a"), std::string("a/b"),
                                  std::string("\xc3\xa4"), std::string("a\\n")}) {
    EXPECT_THAT(named(name), ElementsAre("2:12 rules[0].name")) << name;
  }
}

const std::string kSecret = "hash_secret_file: /s\n";

TEST(ConfigFaults, shared_counters_or_a_mesh_need_a_shared_secret) {
  EXPECT_THAT(faults("counters:\n  shards: [{name: a, address: \"h:1\"}]\n"), ElementsAre("1:1 hash_secret_file"));
  EXPECT_THAT(faults("mesh: {listen: \"127.0.0.1:1\", peers: [{node: b, address: \"h:1\"}]}\n"),
              ElementsAre("1:1 hash_secret_file"));
}

TEST(ConfigFaults, a_mesh_beyond_loopback_is_refused_without_tls) {
  const auto listening = [](const std::string& listen) {
    return kSecret + "mesh: {listen: \"" + listen + "\", peers: [{node: b, address: \"127.0.0.1:9\"}]}\n";
  };
  good(listening("127.0.0.1:1"));
  good(listening("127.255.0.9:1"));
  good(listening("[::1]:1"));
  for (const char* listen : {"0.0.0.0:1", "192.0.2.1:1", "[::]:1", "localhost:1", "[::ffff:0.0.0.0]:1"}) {
    EXPECT_THAT(fault(listening(listen)), HasSubstr("without mesh.tls")) << listen;
    EXPECT_THAT(faults(listening(listen)), ElementsAre("2:16 mesh.listen")) << listen;
  }
  EXPECT_THAT(fault(listening("/run/mesh.sock")), HasSubstr("the mesh runs over TCP"));
  const auto dialling = [](const std::string& address) {
    return kSecret + "mesh: {listen: \"127.0.0.1:1\", peers: [{node: b, address: \"" + address + "\"}]}\n";
  };
  good(dialling("[::1]:2"));
  good(dialling("b.example.net:2"));  // looked up at the start, and refused there
  EXPECT_THAT(faults(dialling("192.0.2.9:1")), ElementsAre("2:58 mesh.peers[0].address"));
  EXPECT_THAT(fault(dialling("[2001:db8::1]:1")), HasSubstr("without mesh.tls"));
}

TEST(ConfigFaults, members_are_distinct_and_not_this_node) {
  const std::string start = kSecret + "node: a\nmesh:\n  listen: 127.0.0.1:1\n  peers:\n";
  EXPECT_THAT(faults(start + "    - {node: a, address: \"127.0.0.1:2\"}\n"), ElementsAre("6:14 mesh.peers[0].node"));
  EXPECT_THAT(faults(start + "    - {node: b, address: \"127.0.0.1:1\"}\n"), ElementsAre("6:26 mesh.peers[0].address"));
  EXPECT_THAT(faults(start + "    - {node: b, address: \"127.0.0.1:2\"}\n    - {node: b, address: \"127.0.0.1:2\"}\n"),
              ElementsAre("7:14 mesh.peers[1].node", "7:26 mesh.peers[1].address"));
  EXPECT_THAT(faults(kSecret + "mesh: {listen: \"127.0.0.1:1\", peers: []}\n"), ElementsAre("2:38 mesh.peers"));
}

TEST(ConfigFaults, shards_are_distinct_and_each_gets_keys) {
  const std::string start = kSecret + "counters:\n  shards:\n";
  EXPECT_THAT(faults(start + "    - {name: a, address: \"h:1\"}\n    - {name: a, address: \"h:1\"}\n"),
              ElementsAre("5:14 counters.shards[1].name", "5:26 counters.shards[1].address"));
  // Two shards: a share must be 1/80. 1 of 80 is, 1 of 81 is not.
  const auto weighed = [&](const std::string& weight) {
    return start + "    - {name: a, address: \"h:1\", weight: " + weight + "}\n    - {name: b, address: \"h:2\"}\n";
  };
  good(weighed("79"));
  EXPECT_THAT(faults(weighed("80")), ElementsAre("5:7 counters.shards[1].weight"));
  EXPECT_THAT(fault(weighed("80")), HasSubstr("it would get no keys"));
  EXPECT_THAT(faults(kSecret + "counters: {shards: []}\n"), ElementsAre("2:20 counters.shards"));
  EXPECT_THAT(faults(kSecret + "counters: {}\n"), ElementsAre("2:11 counters.shards"));
  EXPECT_THAT(faults(kSecret + "counters:\n"), ElementsAre("1:1 counters"));
}

TEST(ConfigFaults, addresses_and_paths_must_have_their_form) {
  for (const char* address :
       {"h", "h:0", "h:65536", "h:x", ":1", "1.2.3:1", "1.2.3.4.5:1", "::1:1", "[h]:1", "run/x", "a b:1", "/"}) {
    EXPECT_THAT(faults(kSecret + "counters: {shards: [{name: a, address: \"" + address + "\"}]}\n"),
                ElementsAre("2:40 counters.shards[0].address"))
        << address;
  }
  EXPECT_THAT(faults("run_dir: run/x\n"), ElementsAre("1:10 run_dir"));
  EXPECT_THAT(faults("worker_socket: /" + std::string(107, 'x') + "\n"), ElementsAre("1:16 worker_socket"));
  EXPECT_THAT(faults("run_dir: /" + std::string(100, 'x') + "\n"),
              ElementsAre("1:1 worker_socket", "1:1 admin_socket"));
  EXPECT_THAT(faults("worker_socket: /a\nadmin_socket: /a\n"), ElementsAre("2:15 admin_socket"));
  for (const char* mode : {"600", "0700", "0060", "0667", "00600", "rw"}) {
    EXPECT_THAT(faults(std::string("worker_socket_mode: ") + mode + "\n"), ElementsAre("1:21 worker_socket_mode"))
        << mode;
  }
}

TEST(ConfigFaults, numbers_out_of_their_range_are_refused) {
  for (const char* text : {"table_entries: 512", "table_entries: 5000", "table_entries: 134217728", "keys_max: 0",
                           "workers_max: 1025", "workers_max: -1", "workers_max: 99999999999999999999",
                           "flush_interval: 1ms", "flush_interval: 2s", "clock_tolerance: 0", "clock_tolerance: 1m"}) {
    EXPECT_EQ(faults(text).size(), 1U) << text;
  }
}

TEST(ConfigFaults, ranges_of_trusted_proxies_must_be_ranges) {
  EXPECT_THAT(faults("trusted_proxies: [10.0.0.1/8]\n"), ElementsAre("1:19 trusted_proxies[0]"));
  for (const char* range :
       {"0.0.0.0/0", "10.0.0.0/33", "10.0.0/8", "x", "10.0.0.0/", "10.0.0.0/8x", "::/0", "::ffff:0:0/96"}) {
    EXPECT_THAT(faults(std::string("trusted_proxies: [\"") + range + "\"]\n"), ElementsAre("1:19 trusted_proxies[0]"))
        << range;
  }
}

TEST(ConfigFaults, beyond_a_thousand_faults_the_list_ends_and_says_so) {
  std::string text;
  for (std::size_t i = 0; i < 2 * kConfigFaultsMax; ++i) text += "x" + std::to_string(i) + ": 1\n";
  const ConfigOutcome outcome = parse_config(text, "f");
  ASSERT_EQ(outcome.faults.size(), kConfigFaultsMax + 1);
  EXPECT_EQ(outcome.faults[0].text(), "f: found more faults than are listed");
}

TEST(ConfigFaults, long_and_unprintable_values_are_shown_cut_and_escaped) {
  EXPECT_THAT(fault("node: \"" + std::string(200, 'x') + " \"\n"), HasSubstr("\"" + std::string(80, 'x') + "…\""));
  EXPECT_THAT(fault("node: \"a\\x1bb\"\n"), HasSubstr("\"a\\x1bb\""));
}

}  // namespace
}  // namespace popgate
