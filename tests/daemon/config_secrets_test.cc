// SPDX-License-Identifier: Apache-2.0
//
// The options of the hash secret and of its change, and what of it a running node takes over.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/hash_secret.h"
#include "daemon/restart_needs.h"
#include "tests/daemon/config_folder.h"

namespace popgate {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class ConfigSecrets : public testing::Test {
 protected:
  ConfigSecrets() {
    for (const char* name : {"old", "new", "other"}) secrets_.emplace(name, *create_secret(folder_.file(name)));
  }
  ConfigOutcome load(const std::string& text) const { return load_config(folder_.write("popgate.yaml", text, 0644)); }
  std::string fault(const std::string& text) const {
    const ConfigOutcome outcome = load(text);
    return outcome.faults.empty() ? "" : outcome.faults[0].text();
  }
  Config config(const std::string& text) const {
    ConfigOutcome outcome = load(text);
    EXPECT_TRUE(outcome.config) << fault(text);
    return outcome.config.value_or(Config{});
  }

  ConfigFolder folder_;
  std::map<std::string, HashSecret> secrets_;
};

constexpr char kOld[] = "hash_secret_file: old\n";
constexpr char kOldAndNext[] = "hash_secret_file: old\nhash_secret_next_file: new\n";
constexpr char kNewAndFormer[] = "hash_secret_file: new\nhash_secret_former_file: old\n";
constexpr char kNew[] = "hash_secret_file: new\n";

TEST_F(ConfigSecrets, the_second_file_says_what_its_secret_is_for) {
  EXPECT_EQ(config(kOld).secrets, HashSecrets(secrets_.at("old")));
  EXPECT_EQ(config(kOldAndNext).secrets, HashSecrets(secrets_.at("old"), secrets_.at("new"), SecondSecret::kCounted));
  EXPECT_EQ(config(kNewAndFormer).secrets, HashSecrets(secrets_.at("new"), secrets_.at("old"), SecondSecret::kChecked));
}

TEST_F(ConfigSecrets, a_second_one_without_a_first_or_with_a_third_or_twice_the_same_is_a_fault) {
  EXPECT_THAT(fault("hash_secret_next_file: new\n"), HasSubstr("hash_secret_file: found nothing"));
  EXPECT_THAT(fault(std::string(kOldAndNext) + "hash_secret_former_file: other\n"),
              HasSubstr("hash_secret_former_file: found \"other\", allowed: either this or hash_secret_next_file"));
  EXPECT_THAT(fault("hash_secret_file: old\nhash_secret_next_file: old\n"),
              HasSubstr("hash_secret_next_file: found \"old\", allowed: another secret than that of hash_secret_file"));
  EXPECT_THAT(fault("hash_secret_file: old\nhash_secret_former_file: none\n"), HasSubstr("hash_secret_former_file"));
}

TEST_F(ConfigSecrets, every_step_of_a_change_is_taken_over_without_a_restart_and_so_is_each_step_back) {
  const std::vector<Config> steps{config(kOld), config(kOldAndNext), config(kNewAndFormer), config(kNew)};
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    for (const auto& [from, to] : {std::pair(i, i + 1), std::pair(i + 1, i)}) {
      EXPECT_THAT(needs_restart(steps[from], steps[to]), Not(Contains("hash_secret_file"))) << from << " to " << to;
      EXPECT_EQ(secrets_after_reload(steps[from], steps[to]), steps[to].secrets) << from << " to " << to;
    }
  }
}

TEST_F(ConfigSecrets, a_first_secret_that_the_node_did_not_have_waits_for_a_restart_and_the_node_keeps_its_own) {
  const Config running = config(kOldAndNext);
  for (const char* wanted : {"hash_secret_file: other\n", "hash_secret_file: other\nhash_secret_next_file: old\n"}) {
    EXPECT_THAT(needs_restart(running, config(wanted)), Contains("hash_secret_file"));
    EXPECT_EQ(secrets_after_reload(running, config(wanted)), running.secrets);
  }
  EXPECT_THAT(needs_restart(config(kOld), config(kNew)), Contains("hash_secret_file"));
  EXPECT_THAT(needs_restart(running, config("node: a\n")), Contains("hash_secret_file"));
}

// A node of its own that made its secret itself: its change begins by naming the file that it has.
TEST_F(ConfigSecrets, a_secret_of_the_nodes_own_making_is_kept_and_may_be_named) {
  Config running = config("node: a\n");
  running.secrets = secrets_.at("old");
  EXPECT_THAT(needs_restart(running, config("node: a\n")), IsEmpty());
  EXPECT_EQ(secrets_after_reload(running, config("node: a\n")), running.secrets);
  EXPECT_THAT(needs_restart(running, config(std::string("node: a\n") + kOldAndNext)), IsEmpty());
}

}  // namespace
}  // namespace popgate
