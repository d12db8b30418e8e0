// SPDX-License-Identifier: Apache-2.0
//
// A PoP of real Mesh and Mitigations instances on one event loop and loopback sockets. Each node has clocks of its own:
// what a test gives them is added to the host's.
//
// Threads: one.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/event_loop.h"
#include "daemon/peers/mesh.h"
#include "daemon/peers/tls_transport.h"
#include "daemon/socket_transport.h"
#include "tests/daemon/mitigate/samples.h"
#include "tests/daemon/peers/tcp_relay.h"
#include "tests/process/free_port.h"

namespace popgate {

/// The host's loop with clocks that are off.
class OffsetReactor final : public Reactor {
 public:
  explicit OffsetReactor(Reactor& host) : host_(host) {}
  [[nodiscard]] HostInstant host_now() const override { return host_.host_now() + boot_offset; }
  [[nodiscard]] PopInstant wall_now() const override { return host_.wall_now() + wall_offset; }
  [[nodiscard]] std::unique_ptr<ReactorTimer> make_timer(std::function<void()> callback) override {
    return host_.make_timer(std::move(callback));
  }

  microseconds boot_offset{0};
  microseconds wall_offset{0};

 private:
  Reactor& host_;
};

struct MeshNode {
  MeshNode(Reactor& host, std::string node_name) : reactor(host), name(std::move(node_name)) {}

  OffsetReactor reactor;
  std::string name;
  std::unique_ptr<TlsTransport> tls;  // null: plain sockets
  std::unique_ptr<Mitigations> set;
  std::unique_ptr<Mesh> mesh;
  std::vector<std::string> snapshots_from;

  [[nodiscard]] HostInstant now() const { return reactor.host_now(); }
  [[nodiscard]] PopInstant wall() const { return reactor.wall_now(); }
  void decide(const Key& key, microseconds lasting = minutes(10));
  void lift(const Key& key);
  [[nodiscard]] bool blocks(const Key& key) const { return set->enforcement(key, now()).has_value(); }
  /// Of set, mesh or transport; with a label's value, of that alone.
  [[nodiscard]] double figure(const std::string& metric, const std::string& label = {}) const;
  [[nodiscard]] PeerStatus peer(const std::string& peer_name) const;
};

class PopOfMeshes {
 public:
  using Tune = std::function<void(MeshOptions&)>;

  /// Names of all members; none is started.
  explicit PopOfMeshes(std::vector<std::string> names);

  MeshNode& node(const std::string& name) { return nodes_.at(name); }
  /// Starts a node, or starts it again with a new incarnation and an empty set.
  MeshNode& start(const std::string& name, const Tune& tune = {});
  void start_all(const Tune& tune = {});
  /// From the next start on the node's connections are under TLS.
  void use_tls(const std::string& name, SharedTlsCredentials credentials);
  /// As a killed daemon ends: without a word.
  void kill(const std::string& name);
  /// From now on (before start) `from` reaches `to` through a relay.
  TcpRelay& relay(const std::string& from, const std::string& to);
  [[nodiscard]] MeshOptions options_of(const std::string& name);
  [[nodiscard]] std::uint16_t port_of(const std::string& name) { return ports_.at(name).number(); }
  [[nodiscard]] event_base* base() const { return loop_.base(); }
  [[nodiscard]] EventLoop& loop() { return loop_; }
  [[nodiscard]] Result<std::unique_ptr<Mesh>> start_mesh(MeshOptions options, Mitigations& set) {
    return Mesh::start(loop_, sockets_, std::move(options), set);
  }

  /// Runs the loop until the condition holds; false after `deadline`.
  [[nodiscard]] bool run_until(const std::function<bool()>& condition, seconds deadline = seconds(30));
  /// Every started node has told everything to every other started one.
  [[nodiscard]] bool settled() const;

 private:
  EventLoop loop_;
  SocketTransport sockets_{loop_};
  Timer pulse_;  // so that conditions on clocks are looked at
  std::map<std::string, process::FreePort> ports_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<TcpRelay>> relays_;
  std::map<std::string, MeshNode> nodes_;
  std::uint64_t incarnations_ = 0;
};

/// For tests: quick to notice, quick to come back.
inline constexpr MeshTimings kQuickTimings{.heartbeat = milliseconds(20),
                                           .hello_timeout = milliseconds(3000),
                                           .silence_max = milliseconds(3000),
                                           .digest = milliseconds(60),
                                           .backoff_first = milliseconds(5),
                                           .backoff_longest = milliseconds(50),
                                           .stable_after = milliseconds(100)};

}  // namespace popgate
