// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/network.h"

#include <algorithm>

#include "tests/simulation/tcp_end.h"

namespace popgate::simulation {

Network::Network(World& world) : world_(world), random_(world.random_for("network")) {}

Network::~Network() = default;

void Network::forget(std::uint64_t end) {
  const auto found = ends_.find(end);
  if (found == ends_.end()) return;
  answering_.erase({found->second->host(), found->second->remote_end()});
  ends_.erase(found);
}

Path& Network::path(HostNumber from, HostNumber to) {
  const auto [found, is_new] = paths_.try_emplace(std::uint64_t{from} << 32 | to);
  if (is_new && from == to) found->second = {.delay = microseconds(15), .jitter = microseconds(10)};
  return found->second;
}

void Network::for_both(HostNumber a, HostNumber b, const std::function<void(Path&)>& change) {
  change(path(a, b));
  change(path(b, a));
}

bool Network::listen(Port port, AcceptFunction accepted) {
  return listeners_.emplace(port, std::move(accepted)).second;
}

std::uint64_t Network::connect(HostNumber from, Port to, std::function<void()> on_change) {
  const std::uint64_t number = ++last_end_;
  auto end = std::make_unique<TcpEnd>(*this, number, from, to, std::move(on_change));
  TcpEnd& opened = *end;
  ends_.emplace(number, std::move(end));
  opened.send_syn();
  return number;
}

TcpEnd* Network::find(std::uint64_t end) {
  const auto found = ends_.find(end);
  return found == ends_.end() ? nullptr : found->second.get();
}

void Network::send(Packet packet) {
  Path& path = this->path(packet.from, packet.to);
  const auto shared = std::make_shared<const Packet>(std::move(packet));
  if (path.cut || chance(random_, path.loss)) return;
  ModelInstant leaves = world_.now();
  if (path.bytes_per_second > 0) {
    path.free_from = std::max(path.free_from, leaves);
    if (path.free_from - leaves > kPathQueueMax) return;
    path.free_from += microseconds((shared->bytes.size() + kHeaderBytes) * 1'000'000 / path.bytes_per_second);
    leaves = path.free_from;
  }
  const int copies = chance(random_, path.repeat) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    const ModelInstant arrives = leaves + path.delay + draw(random_, microseconds(0), path.jitter);
    world_.at(arrives, [this, shared] { deliver(*shared); });
  }
}

void Network::deliver(const Packet& packet) {
  if (path(packet.from, packet.to).cut) return;
  world_.mark({packet.from, packet.to, static_cast<std::uint64_t>(packet.kind), packet.sequence, packet.bytes.size(),
               packet.acknowledged});
  if (packet.kind == Packet::Kind::kSyn) return deliver_syn(packet);
  if (TcpEnd* const end = find(packet.to_end)) return end->receive(packet);
  if (packet.kind != Packet::Kind::kReset) reset_back(packet);
}

// A repeated SYN belongs to the end that the first one made.
void Network::deliver_syn(const Packet& packet) {
  if (const auto known = answering_.find({packet.to, packet.from_end}); known != answering_.end()) {
    return find(known->second)->receive(packet);
  }
  const auto listener = listeners_.find(Port{packet.to, packet.to_port});
  if (listener == listeners_.end()) return reset_back(packet);
  const std::uint64_t number = ++last_end_;
  auto end =
      std::make_unique<TcpEnd>(*this, number, packet, [accepted = listener->second, number] { accepted(number); });
  TcpEnd& opened = *end;
  ends_.emplace(number, std::move(end));
  answering_.emplace(std::pair(packet.to, packet.from_end), number);
  opened.send_syn();
}

void Network::reset_back(const Packet& packet) {
  Packet reset;
  reset.kind = Packet::Kind::kReset;
  reset.from = packet.to;
  reset.to = packet.from;
  reset.from_end = packet.to_end;
  reset.to_end = packet.from_end;
  send(std::move(reset));
}

}  // namespace popgate::simulation
