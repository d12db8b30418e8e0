// SPDX-License-Identifier: Apache-2.0
#include "daemon/config.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "daemon/config_options.h"

namespace popgate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string faults_text(const ConfigOutcome& outcome) {
  std::string text;
  for (const ConfigFault& fault : outcome.faults) text += fault.text() + "\n";
  return text;
}

Config good(const std::string& text) {
  ConfigOutcome outcome = parse_config(text, "popgate.yaml");
  EXPECT_TRUE(outcome.config.has_value()) << faults_text(outcome);
  EXPECT_THAT(outcome.faults, IsEmpty());
  return outcome.config.value_or(Config{});
}

/// Where and what: "2:10 rules[0].limit".
std::vector<std::string> faults(const std::string& text) {
  const ConfigOutcome outcome = parse_config(text, "popgate.yaml");
  EXPECT_EQ(outcome.config.has_value(), outcome.faults.empty());
  std::vector<std::string> places;
  for (const ConfigFault& fault : outcome.faults)
    places.push_back(std::to_string(fault.line) + ":" + std::to_string(fault.column) + " " + fault.field);
  return places;
}

/// The one fault of a text, whole.
std::string fault(const std::string& text) {
  const ConfigOutcome outcome = parse_config(text, "f");
  EXPECT_EQ(outcome.faults.size(), 1U) << faults_text(outcome);
  return outcome.faults.empty() ? "none" : outcome.faults.front().text();
}

/// A rule that is right but for what is added to it, each on a line of its own from line 6 on, at column 5.
std::string rule_with(const std::string& lines) {
  return "rules:\n  - name: r\n    key: [client_ip]\n    limit: 10\n    window: 60s\n" + lines;
}
const std::string kMitigate = "    mitigate: 60s\n";

TEST(Config, an_empty_file_is_a_node_of_its_own_with_defaults) {
  for (const char* text : {"", "# nothing\n", "{}", "---\n"}) {
    const Config config = good(text);
    EXPECT_EQ(config.node, "node");
    EXPECT_EQ(config.run_dir, "/run/popgate");
    EXPECT_EQ(config.worker_socket, "/run/popgate/workers.sock");
    EXPECT_EQ(config.admin_socket, "/run/popgate/admin.sock");
    EXPECT_EQ(config.own_secret_file(), "/var/lib/popgate/hash.secret");
    EXPECT_FALSE(config.counters.has_value());
    EXPECT_FALSE(config.mesh.has_value());
    EXPECT_TRUE(config.rules.all().empty());
  }
}

TEST(Config, every_option_is_read) {
  const Config config = good(R"(
node: fra-1
pop: fra
run_dir: /run/pg
state_dir: /srv/pg
worker_socket: /run/w.sock
worker_socket_mode: 0660
admin_socket: /run/a.sock
log_level: debug
flush_interval: 25ms
clock_tolerance: 10ms
table_entries: 4096
keys_max: 5000
workers_max: 7
hash_secret_file: /etc/popgate/secret
trusted_proxies: [10.0.0.0/8, "2001:db8::/32", 192.0.2.1, "::ffff:172.16.0.0/108"]
counters:
  shards:
    - {name: a, address: "127.0.0.1:11211", weight: 3}
    - {name: b, address: "[::1]:11212"}
    - {name: c, address: /run/memcached.sock}
  proxy: localhost:22121
  timeout: 1s
  batches_in_flight: 2
  batch_keys_max: 100
mesh:
  listen: "[::1]:7000"
  peers:
    - {node: fra-2, address: "127.0.0.2:7000"}
    - {node: fra-3, address: fra-3.example.net:7000}
)");
  EXPECT_EQ(config.file, "popgate.yaml");
  EXPECT_EQ(config.node, "fra-1");
  EXPECT_EQ(config.pop, "fra");
  EXPECT_EQ(config.run_dir, "/run/pg");
  EXPECT_EQ(config.state_dir, "/srv/pg");
  EXPECT_EQ(config.worker_socket, "/run/w.sock");
  EXPECT_EQ(config.worker_socket_mode, 0660U);
  EXPECT_EQ(config.admin_socket, "/run/a.sock");
  EXPECT_EQ(config.log_level, "debug");
  EXPECT_EQ(config.flush_interval, milliseconds(25));
  EXPECT_EQ(config.clock_tolerance, milliseconds(10));
  EXPECT_EQ(config.table_entries, 4096U);
  EXPECT_EQ(config.keys_max, 5000U);
  EXPECT_EQ(config.workers_max, 7U);
  EXPECT_EQ(config.hash_secret_file, "/etc/popgate/secret");
  ASSERT_EQ(config.trusted_proxies.size(), 4U);
  EXPECT_EQ(config.trusted_proxies[0].prefix_bits, 8);
  EXPECT_EQ(config.trusted_proxies[0].base.octets[0], 10);
  EXPECT_EQ(config.trusted_proxies[1].base.bytes, 16);
  EXPECT_EQ(config.trusted_proxies[2].prefix_bits, 32);
  EXPECT_EQ(config.trusted_proxies[3].base.bytes, 4);
  EXPECT_EQ(config.trusted_proxies[3].prefix_bits, 12);
  ASSERT_TRUE(config.counters.has_value());
  ASSERT_EQ(config.counters->shards.size(), 3U);
  EXPECT_EQ(config.counters->shards[0].name, "a");
  EXPECT_EQ(config.counters->shards[0].weight, 3U);
  EXPECT_EQ(config.counters->shards[1].address.host, "::1");
  EXPECT_EQ(config.counters->shards[1].address.port, 11212);
  EXPECT_EQ(config.counters->shards[1].weight, 1U);
  EXPECT_EQ(config.counters->shards[2].address.unix_path, "/run/memcached.sock");
  EXPECT_EQ(config.counters->proxy->text(), "localhost:22121");
  EXPECT_EQ(config.counters->timeout, milliseconds(1000));
  EXPECT_EQ(config.counters->batches_in_flight, 2U);
  EXPECT_EQ(config.counters->batch_keys_max, 100U);
  ASSERT_TRUE(config.mesh.has_value());
  EXPECT_EQ(config.mesh->listen.text(), "[::1]:7000");
  ASSERT_EQ(config.mesh->peers.size(), 2U);
  EXPECT_EQ(config.mesh->peers[1].node, "fra-3");
  EXPECT_EQ(config.mesh->peers[1].address.text(), "fra-3.example.net:7000");
}

TEST(ConfigRules, every_field_is_read) {
  const Config config = good(R"(
rules:
  - name: login
    match: {host: "*.example.com", path: /login, method: [put, POST]}
    key:
      - client_ip: {v4_prefix: 24, v6_prefix: 56}
      - header: X-Api-Key
      - cookie: Session
      - host
      - path
      - method
    limit: 100
    window: 5m
    slots: 10
    mitigate: 1h
    action: log
    count: all
    cost: 3
    policy: estimate
    max_blocked_share: 30
    enabled: false
  - {name: plain, key: [client_ip], limit: 1, window: 1s, mitigate: 0}
)");
  ASSERT_EQ(config.rules.all().size(), 2U);
  const Rule& login = *config.rules.by_name("login");
  EXPECT_EQ(login.number, 0U);
  EXPECT_EQ(login.match.host_match, HostMatch::kSuffix);
  EXPECT_EQ(login.match.host, ".example.com");
  EXPECT_EQ(login.match.path_match, PathMatch::kExact);
  EXPECT_EQ(login.match.path, "/login");
  EXPECT_THAT(login.match.methods, ElementsAre("POST", "PUT"));
  ASSERT_EQ(login.key.size(), 6U);
  EXPECT_EQ(login.key[0].type, KeyPart::kClientIp);
  EXPECT_EQ(login.key[0].v4_prefix, 24);
  EXPECT_EQ(login.key[0].v6_prefix, 56);
  EXPECT_EQ(login.key[1].name, "x-api-key");
  EXPECT_EQ(login.key[2].type, KeyPart::kCookie);
  EXPECT_EQ(login.key[2].name, "Session");
  EXPECT_EQ(login.key[5].type, KeyPart::kMethod);
  EXPECT_EQ(login.limit, 100U);
  EXPECT_EQ(login.window, WindowShape::make(std::chrono::minutes(5), 10, milliseconds(20)));
  EXPECT_EQ(login.mitigate, std::chrono::hours(1));
  EXPECT_EQ(login.action, Action::kLog);
  EXPECT_EQ(login.count, CountMode::kAll);
  EXPECT_EQ(login.cost, 3U);
  EXPECT_EQ(login.max_blocked_share, 30U);
  EXPECT_TRUE(config.rules.fused().empty()) << "it is not enabled";
  EXPECT_FALSE(login.enabled);
  const Rule& plain = *config.rules.by_name("plain");
  EXPECT_EQ(plain.number, 1U);
  EXPECT_EQ(plain.key[0].v4_prefix, 32);
  EXPECT_EQ(plain.key[0].v6_prefix, 64);
  EXPECT_EQ(plain.window.slots, 6U);
  EXPECT_EQ(plain.mitigate, milliseconds(0));
  EXPECT_EQ(plain.action, Action::kBlock);
  EXPECT_EQ(plain.max_blocked_share, std::nullopt);
  EXPECT_TRUE(plain.enabled);
}

TEST(ConfigRules, as_many_rules_as_heartbeats_tell_of_have_a_fuse_and_one_more_is_refused) {
  const auto rules = [](std::size_t count) {
    std::string yaml = "rules:\n";
    for (std::size_t i = 0; i < count; ++i) {
      yaml += "  - {name: r" + std::to_string(i) +
              ", key: [client_ip], limit: 1, window: 1s, mitigate: 0, max_blocked_share: 30}\n";
    }
    return yaml;
  };
  EXPECT_EQ(good(rules(kFusedRulesMax)).rules.fused().size(), kFusedRulesMax);
  EXPECT_THAT(faults(rules(kFusedRulesMax + 1)), ElementsAre("66:89 rules[64].max_blocked_share"));
}

TEST(ConfigRules, a_path_is_exact_unless_it_has_a_wildcard_or_says_so) {
  const auto path_of = [](const std::string& path) {
    return good(rule_with(kMitigate + "    match: {path: " + path + "}\n")).rules.all()[0].match;
  };
  EXPECT_EQ(path_of("/a").path_match, PathMatch::kExact);
  EXPECT_EQ(path_of("/a/*").path_match, PathMatch::kGlob);
  EXPECT_EQ(path_of("\"/a?c\"").path_match, PathMatch::kGlob);
  EXPECT_EQ(path_of("{exact: /a*}").path_match, PathMatch::kExact);
  EXPECT_EQ(path_of("{prefix: /a/}").path_match, PathMatch::kPrefix);
  EXPECT_EQ(path_of("{glob: \"/**/x\"}").path, "/**/x");
}

TEST(ConfigRules, anchors_and_aliases_work) {
  const Config config = good(
      "rules:\n  - {name: a, key: &ip [client_ip], limit: 1, window: 1s, mitigate: 1s}\n"
      "  - {name: b, key: *ip, limit: 1, window: 1s, mitigate: 1s}\n");
  EXPECT_EQ(config.rules.by_name("b")->key.size(), 1U);
}

// Every fault of a file, in the order of the file.
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

/// A folder of its own, removed at the end.
class ConfigFile : public testing::Test {
 protected:
  ConfigFile() {
    char name[] = "/tmp/popgate-config-XXXXXX";
    folder = mkdtemp(name);
  }
  ~ConfigFile() override {
    unlink((folder + "/popgate.yaml").c_str());
    unlink((folder + "/secret").c_str());
    rmdir(folder.c_str());
  }
  std::string write(const std::string& name, const std::string& text, mode_t mode) const {
    const std::string path = folder + "/" + name;
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
    return path;
  }
  std::string folder;
};

TEST_F(ConfigFile, is_loaded_with_the_secret_beside_it) {
  write("secret", "000102030405060708090a0b0c0d0e0F\n", 0600);
  const auto outcome = load_config(write("popgate.yaml", "hash_secret_file: secret\n", 0644));
  ASSERT_TRUE(outcome.config.has_value()) << faults_text(outcome);
  EXPECT_EQ(outcome.config->hash_secret_file, folder + "/secret");
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(outcome.config->secrets.first.bytes[i], i);
}

TEST_F(ConfigFile, an_empty_one_has_defaults) {
  const auto outcome = load_config(write("popgate.yaml", "", 0644));
  ASSERT_TRUE(outcome.config.has_value()) << faults_text(outcome);
  EXPECT_EQ(outcome.config->node, "node");
}

TEST_F(ConfigFile, a_secret_that_others_may_read_is_a_fault_of_the_file) {
  write("secret", "000102030405060708090a0b0c0d0e0f", 0640);
  const auto outcome = load_config(write("popgate.yaml", "node: a\nhash_secret_file: secret\n", 0644));
  ASSERT_EQ(outcome.faults.size(), 1U);
  EXPECT_EQ(outcome.faults[0].line, 2);
  EXPECT_EQ(outcome.faults[0].column, 19);
  EXPECT_THAT(outcome.faults[0].text(), HasSubstr("found mode 0640, allowed: 0600"));
}

TEST_F(ConfigFile, one_that_cannot_be_read_is_a_fault) {
  for (const std::string& path : {folder + "/none.yaml", folder}) {
    const auto outcome = load_config(path);
    ASSERT_EQ(outcome.faults.size(), 1U);
    EXPECT_THAT(outcome.faults[0].text(), HasSubstr(path + ": found a file that cannot be read")) << path;
  }
}

}  // namespace
}  // namespace popgate
