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
#include "tests/daemon/config_case.h"

namespace popgate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

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
