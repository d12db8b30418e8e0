// SPDX-License-Identifier: Apache-2.0
#include "tests/daemon/peers/pop_of_meshes.h"

#include <event2/event.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

namespace popgate {

void MeshNode::decide(const Key& key, microseconds lasting) {
  const Rule rule = sample_rule();
  const Judgement judgement{now() + lasting, now()};
  EXPECT_EQ(set->decide({key, rule, sample_evidence(150), judgement}, now(), wall()), DecideOutcome::kDecided);
}

void MeshNode::lift(const Key& key) { EXPECT_TRUE(set->lift({key, wall(), "customer"}, now(), wall())); }

double MeshNode::figure(const std::string& metric, const std::string& label) const {
  double sum = 0;
  const MetricVisitor visitor = [&](const Metric& m) {
    if (m.name == metric && (label.empty() || m.label_value == label)) sum += m.value;
  };
  set->visit(visitor);
  mesh->visit(visitor);
  if (tls != nullptr) tls->visit(visitor);
  return sum;
}

PeerStatus MeshNode::peer(const std::string& peer_name) const {
  for (const PeerStatus& peer : mesh->status().peers) {
    if (peer.name == peer_name) return peer;
  }
  ADD_FAILURE() << "no peer " << peer_name;
  return {};
}

PopOfMeshes::PopOfMeshes(std::vector<std::string> names) : pulse_(loop_, [] {}) {
  signal(SIGPIPE, SIG_IGN);
  for (const std::string& name : names) {
    ports_.emplace(name, process::FreePort());
    nodes_.emplace(std::piecewise_construct, std::forward_as_tuple(name), std::forward_as_tuple(loop_, name));
  }
  pulse_.start_every(milliseconds(2));
}

TcpRelay& PopOfMeshes::relay(const std::string& from, const std::string& to) {
  auto& relay = relays_[{from, to}];
  if (relay == nullptr) relay = std::make_unique<TcpRelay>(loop_, port_of(to));
  return *relay;
}

MeshOptions PopOfMeshes::options_of(const std::string& name) {
  MeshNode& me = nodes_.at(name);
  MeshOptions options;
  options.pop = "test";
  options.node = name;
  options.incarnation = ++incarnations_;
  options.secret_id = 1;
  options.listen = {"127.0.0.1", port_of(name), ""};
  options.seed = incarnations_;
  options.timings = kQuickTimings;
  options.on_snapshot = [&me](const std::string& from) { me.snapshots_from.push_back(from); };
  for (const auto& [other, port] : ports_) {
    if (other == name) continue;
    const auto through = relays_.find({name, other});
    const std::uint16_t reached_at = through == relays_.end() ? port.number() : through->second->port();
    options.peers.push_back({other, {"127.0.0.1", reached_at, ""}});
  }
  return options;
}

MeshNode& PopOfMeshes::start(const std::string& name, const Tune& tune) {
  kill(name);
  MeshNode& me = nodes_.at(name);
  MeshOptions options = options_of(name);
  if (tune) tune(options);
  me.set = std::make_unique<Mitigations>(Mitigations::Options{name, options.incarnation},
                                         [&me](const Mitigation& mitigation, const Origin& origin) {
                                           if (me.mesh != nullptr) me.mesh->broadcast(mitigation, origin);
                                         });
  me.set->use_rules(sample_rules({sample_rule()}), me.now());
  me.set->allow_originating(0);
  auto mesh = Mesh::start(me.reactor, me.tls != nullptr ? static_cast<Transport&>(*me.tls) : sockets_,
                          std::move(options), *me.set);
  EXPECT_TRUE(mesh) << mesh.error();
  if (mesh) me.mesh = *std::move(mesh);
  return me;
}

void PopOfMeshes::use_tls(const std::string& name, SharedTlsCredentials credentials) {
  kill(name);
  MeshNode& me = nodes_.at(name);
  auto transport = TlsTransport::make(loop_, me.reactor, std::move(credentials), milliseconds(50));
  EXPECT_TRUE(transport) << transport.error();
  if (transport) me.tls = *std::move(transport);
}

void PopOfMeshes::start_all(const Tune& tune) {
  for (const auto& [name, port] : ports_) start(name, tune);
}

void PopOfMeshes::kill(const std::string& name) {
  nodes_.at(name).mesh.reset();
  nodes_.at(name).set.reset();
  nodes_.at(name).snapshots_from.clear();
}

bool PopOfMeshes::run_until(const std::function<bool()>& condition, seconds deadline) {
  const HostInstant end = HostClock::now() + deadline;
  while (!condition()) {
    if (HostClock::now() > end) return false;
    event_base_loop(base(), EVLOOP_ONCE);
  }
  return true;
}

bool PopOfMeshes::settled() const {
  std::size_t started = 0;
  for (const auto& [name, node] : nodes_) started += node.mesh != nullptr ? 1U : 0U;
  return std::all_of(nodes_.begin(), nodes_.end(), [&](const auto& named) {
    if (named.second.mesh == nullptr) return true;
    const MeshStatus status = named.second.mesh->status();
    const auto told =
        std::count_if(status.peers.begin(), status.peers.end(), [](const auto& p) { return p.up_to_date; });
    return static_cast<std::size_t>(told) + 1 >= started;
  });
}

}  // namespace popgate
