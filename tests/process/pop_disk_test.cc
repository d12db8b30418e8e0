// SPDX-License-Identifier: Apache-2.0
//
// Disks that are full or read-only: the daemon says which path and why, goes on from memory, and makes up for it when
// there is room again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/process/pop.h"
#include "tests/process/small_disk.h"

namespace popgate::process {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kRules[] = "  - {name: all, key: [client_ip], limit: 20, window: 1h, mitigate: 1h}\n";
constexpr std::size_t kDiskBytes = 64 * 1024;

std::string client(int i) { return "203.0.113." + std::to_string(i); }

class PopDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = SmallDisk::unavailable()) GTEST_SKIP() << "no mount namespaces here: " << *reason;
    pop_ = std::make_unique<Pop>(PopOptions{
        .nodes = 1, .shards = 0, .proxy = false, .rules = kRules, .more = "table_entries: 1024\n", .start = false});
  }
  [[nodiscard]] Node& node() { return pop_->node(0); }
  [[nodiscard]] std::filesystem::path run_dir() const { return pop_->folder() / "node-0"; }
  /// From the next start on this folder is a small disk.
  void put_on_a_small_disk(const std::filesystem::path& folder, std::size_t bytes) {
    disk_.emplace(folder, bytes);
    node().surroundings().mount_namespace = disk_->mount_namespace();
  }
  void start() {
    pop_->start();
    worker_ = std::make_unique<Worker>(node());
    ASSERT_TRUE(worker_->attach());
  }
  void block(int i) {
    (void)node().post("/block", {{"rule", "all"}, {"values", {client(i)}}, {"for_ms", 3'600'000}});
    EXPECT_TRUE(worker_->is_blocked(client(i)));
  }
  void kill_and_start() {
    node().kill();
    node().start();
    ASSERT_TRUE(worker_->attach());
  }
  [[nodiscard]] bool remembers(int i) {
    return node().get("/mitigations")["mitigations"].dump().find("operator") != std::string::npos &&
           worker_->is_blocked(client(i));
  }

  std::unique_ptr<Pop> pop_;
  std::optional<SmallDisk> disk_;
  std::unique_ptr<Worker> worker_;
};

TEST_F(PopDisk, full_state_dir_is_told_blocks_hold_and_are_recorded_when_there_is_room) {
  put_on_a_small_disk(run_dir() / "state", kDiskBytes);
  start();
  block(1);
  disk_->fill();
  for (int i = 2; i <= 40; ++i) block(i);  // records of 512 bytes: what room the last page had is used up
  EXPECT_GT(node().metric("popgate_publish_unrecorded"), 0);
  EXPECT_THAT(node().process().output(), HasSubstr((run_dir() / "state/mitigations.records").string()));
  EXPECT_THAT(node().process().output(), HasSubstr("No space left on device"));
  for (int i = 0; i < 21; ++i) worker_->request(client(99));
  EXPECT_TRUE(eventually([&] { return worker_->is_blocked(client(99)); })) << "it goes on deciding";

  disk_->free();
  ASSERT_TRUE(eventually([&] { return node().metric("popgate_publish_unrecorded") == 0; }));
  EXPECT_THAT(node().process().output(), HasSubstr("recorded again"));
  kill_and_start();
  for (int i = 1; i <= 40; ++i) EXPECT_TRUE(remembers(i)) << client(i);
  EXPECT_TRUE(worker_->is_blocked(client(99)));
}

TEST_F(PopDisk, read_only_state_dir_gives_what_it_holds_and_takes_the_rest_when_it_can) {
  put_on_a_small_disk(run_dir() / "state", kDiskBytes);
  start();
  block(1);
  node().kill();
  disk_->set_read_only(true);
  node().start();
  ASSERT_TRUE(worker_->attach());
  EXPECT_TRUE(remembers(1)) << "it can be read";
  EXPECT_THAT(node().process().output(), HasSubstr("Read-only file system"));
  block(2);
  EXPECT_EQ(node().metric("popgate_publish_unrecorded"), 1);
  EXPECT_EQ(node().get("/status")["mitigations"]["not_recorded"], 1);

  disk_->set_read_only(false);
  ASSERT_TRUE(eventually([&] { return node().metric("popgate_publish_unrecorded") == 0; }));
  kill_and_start();
  EXPECT_TRUE(remembers(1));
  EXPECT_TRUE(remembers(2));
}

// ---- run_dir: table and ledger have their room from the start; rules are written anew ----

class PopRunDir : public PopDisk {
 protected:
  void SetUp() override {
    PopDisk::SetUp();
    if (pop_ == nullptr) return;
    std::filesystem::create_directory(inside());
    put_on_a_small_disk(inside(), 1024 * 1024);
    configure(kRules);
  }
  [[nodiscard]] std::filesystem::path inside() const { return run_dir() / "run"; }
  /// With sockets where this process finds them.
  void configure(const std::string& rules) {
    pop_->configure_rules(rules);
    const std::string sockets = "\nworker_socket: " + node().worker_socket().string() +
                                "\nadmin_socket: " + node().admin_socket().string() + "\n";
    std::string yaml = node().config();
    const std::string line = "run_dir: " + run_dir().string() + "\n";
    yaml.replace(yaml.find(line), line.size(), "run_dir: " + inside().string() + sockets);
    node().configure(yaml);
  }
};

TEST_F(PopRunDir, full_one_takes_new_rules_and_a_new_daemon_serves_on_with_the_table_that_is_there) {
  start();
  block(1);
  disk_->fill();
  block(2);
  configure("  - {name: all, key: [client_ip], limit: 30, window: 1h, mitigate: 1h}\n");
  EXPECT_EQ(ask_admin(node().admin_socket(), "POST", "/reload").status, 200);
  EXPECT_EQ(node().get("/rules")["rules"][0]["limit"], 30);
  EXPECT_THAT(node().process().output(),
              AllOf(HasSubstr((inside() / "rules").string()), HasSubstr("No space left on device")));
  for (int i = 0; i < 31; ++i) worker_->request(client(99));
  EXPECT_TRUE(eventually([&] { return worker_->is_blocked(client(99)); })) << "workers have the new rules";

  kill_and_start();
  for (const int i : {1, 2, 99}) EXPECT_TRUE(remembers(i));
  for (int i = 0; i < 31; ++i) worker_->request(client(98));
  EXPECT_TRUE(eventually([&] { return worker_->is_blocked(client(98)); })) << "it counts and decides";
}

TEST_F(PopRunDir, full_one_without_a_table_is_an_error_that_says_how_much_room_is_missing) {
  disk_->fill();
  EXPECT_FALSE(node().starts());
  EXPECT_THAT(node().process().output(), AllOf(HasSubstr(inside().string()), HasSubstr("No space left on device"),
                                               ::testing::ContainsRegex("[0-9]+ bytes are needed, [0-9]+ are free")));
  disk_->free();
  node().start();
}

TEST_F(PopRunDir, read_only_one_is_an_error_that_names_the_folder_and_workers_keep_the_last_table) {
  start();
  block(1);
  node().kill();
  disk_->set_read_only(true);
  EXPECT_FALSE(node().starts());
  EXPECT_THAT(node().process().output(),
              HasSubstr(inside().string() + ": run_dir cannot be written: Read-only file system"));
  worker_->tick();
  EXPECT_TRUE(worker_->is_blocked(client(1)));
  disk_->set_read_only(false);
  node().start();
  ASSERT_TRUE(worker_->attach());
  EXPECT_TRUE(remembers(1));
}

}  // namespace
}  // namespace popgate::process
