// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/nutcracker_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "daemon/config.h"
#include "tests/process/nutcracker.h"

namespace popgate {
namespace {

using ::testing::HasSubstr;

Config with_proxy(const Endpoint& proxy) {
  Config config;
  CountersConfig counters;
  counters.proxy = proxy;
  counters.shards = {{"a", {"127.0.0.1", 11211, ""}, 1}, {"b", {"", 0, "/run/memcached-b.sock"}, 3}};
  config.counters = counters;
  return config;
}

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(NutcrackerConfig, shards_are_named_and_weighted) {
  const std::string yml = nutcracker_yml(with_proxy({"127.0.0.1", 22121, ""}));
  EXPECT_THAT(yml, HasSubstr("\n    - 127.0.0.1:11211:1 a\n    - /run/memcached-b.sock:3 b\n"));
  EXPECT_THAT(yml, HasSubstr("\n  listen: 127.0.0.1:22121\n"));
  EXPECT_THAT(yml, HasSubstr("\n  auto_eject_hosts: false\n"));
}

TEST(NutcrackerConfig, twemproxy_gives_a_shard_up_before_the_daemon_gives_twemproxy_up) {
  Config config = with_proxy({"127.0.0.1", 22121, ""});
  for (const int timeout_ms : {10, 400, 5000}) {
    config.counters->timeout = milliseconds(timeout_ms);
    EXPECT_LT(nutcracker_timeout_ms(timeout_ms), timeout_ms);
    EXPECT_GT(nutcracker_timeout_ms(timeout_ms), 0);
    EXPECT_THAT(nutcracker_yml(config),
                HasSubstr("\n  timeout: " + std::to_string(nutcracker_timeout_ms(timeout_ms)) + "\n"));
  }
}

TEST(NutcrackerConfig, nutcracker_accepts_what_is_made) {
  for (const Endpoint& proxy : {Endpoint{"127.0.0.1", 22121, ""}, Endpoint{"", 0, "/tmp/nutcracker.sock"}}) {
    std::string said;
    EXPECT_TRUE(process::nutcracker_accepts(nutcracker_yml(with_proxy(proxy)), said)) << said;
  }
  std::string said;
  EXPECT_FALSE(process::nutcracker_accepts("pop:\n  listen: 127.0.0.1:22121\n  hash: nonsense\n", said))
      << "a check that accepts everything checks nothing";
}

// POPGATE_SOURCE_DIR comes from the build.
TEST(NutcrackerConfig, the_example_is_what_the_generator_makes_of_its_counters) {
  const std::string folder = std::string(POPGATE_SOURCE_DIR) + "/twemproxy-config/";
  const ConfigOutcome outcome = parse_config(file_text(folder + "popgate.yml.example"), "popgate.yml.example");
  for (const ConfigFault& fault : outcome.faults) ADD_FAILURE() << fault.text();
  ASSERT_TRUE(outcome.config);
  const std::string yml = nutcracker_yml(*outcome.config);
  EXPECT_EQ(yml, file_text(folder + "nutcracker.yml.example"));
  std::string said;
  EXPECT_TRUE(process::nutcracker_accepts(yml, said)) << said;
}

}  // namespace
}  // namespace popgate
