// SPDX-License-Identifier: Apache-2.0
//
// A whole PoP for the length of a test: real memcached shards, a real nutcracker, real popgated nodes, on free loopback
// ports and in a folder of its own on tmpfs.
//
// Threads: one thread at a time.
// Invariants: 1. Every daemon ends with the test; the folder is removed.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "popgate/popgate.h"
#include "tests/process/child_process.h"
#include "tests/process/free_port.h"
#include "tests/process/memcached.h"
#include "tests/process/nutcracker.h"

namespace popgate::process {

/// A folder on tmpfs that is removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// What one daemon's admin socket answers.
struct AdminAnswer {
  int status = 0;
  std::string body;
};
[[nodiscard]] AdminAnswer ask_admin(const std::filesystem::path& socket, const std::string& method,
                                    const std::string& target, const std::string& body = "");

class Node {
 public:
  Node(std::string name, std::filesystem::path folder) : name_(std::move(name)), folder_(std::move(folder)) {}

  /// Writes the configuration; used at the next start or reload.
  void configure(const std::string& yaml);
  /// What is configured.
  [[nodiscard]] std::string config() const;
  /// Returns once it answers; throws when it does not.
  void start();
  /// The same without an exception: false when it ended instead.
  [[nodiscard]] bool starts();
  /// SIGTERM; the exit status.
  int stop();
  void kill() { daemon_->kill_now(); }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::filesystem::path config_file() const { return folder_ / (name_ + ".yml"); }
  [[nodiscard]] std::filesystem::path worker_socket() const { return folder_ / name_ / "workers.sock"; }
  [[nodiscard]] std::filesystem::path admin_socket() const { return folder_ / name_ / "admin.sock"; }
  [[nodiscard]] ChildProcess& process() { return *daemon_; }
  /// In which it is started from now on.
  [[nodiscard]] ChildProcess::Options& surroundings() { return surroundings_; }
  /// A program with its arguments that becomes the daemon: what it is started under from now on.
  [[nodiscard]] std::vector<std::string>& under() { return under_; }
  [[nodiscard]] nlohmann::json get(const std::string& target) const;
  [[nodiscard]] nlohmann::json post(const std::string& target, const nlohmann::json& body) const;
  /// True once the node says that counters and peers are reachable.
  [[nodiscard]] bool ready() const;
  /// The sum of a metric over its labels.
  [[nodiscard]] double metric(const std::string& name) const;

 private:
  std::string name_;
  std::filesystem::path folder_;
  ChildProcess::Options surroundings_;
  std::vector<std::string> under_;
  std::optional<ChildProcess> daemon_;
};

class Network;

struct PopOptions {
  int nodes = 3;
  int shards = 3;
  bool proxy = true;
  std::string rules{};  // the `rules:` part of every node's configuration
  std::string more{};   // further top-level lines
  int shard_megabytes = 64;
  std::vector<std::string> shard_arguments{};
  /// Node i on its host i, and all shards on the host after the last node's; null: everything on loopback.
  Network* network = nullptr;
  bool tls = false;   // also on loopback; on a network it always is
  bool start = true;  // false: the test changes something first, and then calls start()
};

class Pop {
 public:
  explicit Pop(PopOptions options);
  /// Starts every daemon, and returns once all are ready.
  void start();

  [[nodiscard]] Node& node(std::size_t index) { return *nodes_[index]; }
  [[nodiscard]] std::size_t nodes() const { return nodes_.size(); }
  [[nodiscard]] Memcached& shard(std::size_t index) { return *shards_[index]; }
  [[nodiscard]] std::size_t shards() const { return shards_.size(); }
  [[nodiscard]] Nutcracker& proxy() { return *proxy_; }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_.path(); }

  /// New certificates of the same CA in the place of the old ones; daemons read them when told to.
  void make_certificates() const;
  [[nodiscard]] std::filesystem::path certificates() const { return folder_.path() / "certificates"; }
  /// Every node's configuration with another `rules:` part; daemons read it when told to.
  void configure_rules(const std::string& rules);
  /// The sum of every counter of every shard that belongs to Popgate (all slots of all keys).
  [[nodiscard]] std::uint64_t counters_sum();

 private:
  [[nodiscard]] Memcached::Options shard_options() const;
  [[nodiscard]] std::string address_of(std::size_t host) const;
  [[nodiscard]] bool has_tls() const { return options_.nodes > 1 && (options_.tls || options_.network != nullptr); }
  [[nodiscard]] std::string tls_of(std::size_t node) const;
  [[nodiscard]] std::string config_of(std::size_t node, const std::string& rules) const;

  PopOptions options_;
  TemporaryFolder folder_;
  std::vector<std::unique_ptr<Memcached>> shards_;
  std::vector<FreePort> mesh_ports_;
  std::optional<Nutcracker> proxy_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<std::uint16_t, std::set<std::string>> counter_keys_;  // seen so far, by the shard's port
};

/// A worker's handle in this process, attached to a node.
class Worker {
 public:
  explicit Worker(const Node& node, std::uint32_t ring_slots = 0) : Worker(node.worker_socket(), ring_slots) {}
  explicit Worker(const std::filesystem::path& socket, std::uint32_t ring_slots = 0);
  ~Worker() { popgate_close(client_); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// One GET / from the address; true when blocked.
  bool request(const std::string& address, const std::string& path = "/");
  /// The same without recording anything.
  bool is_blocked(const std::string& address, const std::string& path = "/");
  void tick() { (void)popgate_tick(client_); }
  /// Ticks until attached.
  [[nodiscard]] bool attach();
  [[nodiscard]] popgate_statistics statistics() const;
  [[nodiscard]] popgate_client* client() { return client_; }

 private:
  popgate_client* client_ = nullptr;
};

}  // namespace popgate::process
