// SPDX-License-Identifier: Apache-2.0
#include "daemon/peers/mesh.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "daemon/printable_text.h"

namespace popgate {
namespace {

/// `anywhere`: the transport proves who is there.
Result<SocketAddress> address_of(const std::string& field, const Endpoint& endpoint, bool anywhere) {
  if (!endpoint.unix_path.empty()) return Error{field + ": found a Unix socket, allowed: a TCP address"};
  auto address = SocketAddress::resolve(endpoint.host, endpoint.port);
  if (!address) return Error{field + ": " + address.error()};
  if (anywhere || address->is_loopback()) return address;
  return Error{field + ": found " + address->text() +
               ", allowed: a loopback address, because without mesh.tls this node would tell and believe anybody"};
}

Status check_name(const std::string& field, const std::string& name) {
  if (!name.empty() && name.size() <= wire::kNameBytesMax) return {};
  return Error{field + ": found " + std::to_string(name.size()) + " bytes, allowed: 1 to " +
               std::to_string(wire::kNameBytesMax)};
}

Status check_members(const MeshOptions& options) {
  if (const Status pop = check_name("pop", options.pop); !pop) return pop;
  if (const Status node = check_name("node", options.node); !node) return node;
  if (options.peers.size() >= wire::kMembersMax) {
    return Error{"peers: found " + std::to_string(options.peers.size()) + ", allowed: fewer than " +
                 std::to_string(wire::kMembersMax)};
  }
  std::vector<std::string> names{options.node};
  for (const MemberConfig& peer : options.peers) {
    if (const Status name = check_name("peers.node", peer.node); !name) return name;
    const bool is_known = std::find(names.begin(), names.end(), peer.node) != names.end();
    if (is_known) return Error{"peers.node: found \"" + peer.node + "\" twice, allowed: one member of a name"};
    names.push_back(peer.node);
  }
  return {};
}

MeshIdentity identity_of(const MeshOptions& options) {
  MeshIdentity identity{.pop = options.pop,
                        .node = options.node,
                        .incarnation = options.incarnation,
                        .secret_id = options.secret_id,
                        .second_secret = options.second_secret,
                        .rules_revision = options.rules_revision,
                        .members = {options.node},
                        .version_min = options.version_min,
                        .version_max = options.version_max};
  for (const MemberConfig& peer : options.peers) identity.members.push_back(peer.node);
  std::sort(identity.members.begin(), identity.members.end());
  return identity;
}

std::string_view host_of(std::string_view address) { return address.substr(0, address.rfind(':')); }

void add(ConnectionCounts& sum, const ConnectionCounts& counts) {
  sum.bytes_in += counts.bytes_in;
  sum.bytes_out += counts.bytes_out;
  sum.frames_in += counts.frames_in;
  sum.frames_out += counts.frames_out;
}

}  // namespace

Result<std::unique_ptr<Mesh>> Mesh::start(Reactor& reactor, Transport& transport, MeshOptions options,
                                          Mitigations& set) {
  if (const Status members = check_members(options); !members) return Error{members.error()};
  std::unique_ptr<Mesh> mesh(new Mesh(reactor, transport, std::move(options), set));
  if (const Status listening = mesh->listen(); !listening) return Error{listening.error()};
  for (const MemberConfig& member : mesh->options_.peers) {
    if (const Status added = mesh->add_peer(member); !added) return Error{added.error()};
  }
  for (const auto& link : mesh->links_) link->dial();
  mesh->ticker_.start_every(mesh->options_.timings.heartbeat);
  return mesh;
}

Mesh::Mesh(Reactor& reactor, Transport& transport, MeshOptions options, Mitigations& set)
    : options_(std::move(options)),
      context_{reactor,
               transport,
               set,
               options_.brakes,
               options_.figures,
               identity_of(options_),
               options_.timings,
               options_.output_bytes_max,
               std::mt19937_64(options_.seed),
               options_.count_lag},
      session_events_{
          .admit = [this](PeerSession& session, const wire::Hello& hello) { return admit(session, hello); },
          .on_snapshot =
              [this](const std::string& node) {
                if (options_.on_snapshot) options_.on_snapshot(node);
              },
          .on_closed = [this](PeerSession& session, const Connection::Loss& loss) { on_closed(session, loss); }},
      ticker_(reactor, [this] { tick(); }) {}

Mesh::~Mesh() = default;

Status Mesh::listen() {
  const auto address = address_of("mesh.listen", options_.listen, context_.transport.proves_names());
  if (!address) return Error{address.error()};
  auto listener = context_.transport.listen(
      *address,
      [this](std::unique_ptr<Stream> stream, const SocketAddress& remote) { on_accept(std::move(stream), remote); });
  if (!listener) return Error{"mesh.listen: " + listener.error()};
  listener_ = *std::move(listener);
  return {};
}

Status Mesh::add_peer(const MemberConfig& member) {
  const auto address =
      address_of("mesh.peers \"" + member.node + "\"", member.address, context_.transport.proves_names());
  if (!address) return Error{address.error()};
  links_.push_back(std::make_unique<PeerLink>(context_, member.node, *address));
  const MeshTimings& timings = context_.timings;
  heard_.emplace(member.node, Heard{.last = {},
                                    .said_goodbye = false,
                                    .certificate_until = {},
                                    .rubbish_cuts = 0,
                                    .refused_until = {},
                                    .backoff = Backoff(timings.backoff_first, timings.backoff_longest),
                                    .closed_counts = {}});
  return {};
}

void Mesh::broadcast(const Mitigation& mitigation, const Origin& origin) {
  const bool decided_here = origin.kind == Origin::Kind::kLocal;
  const bool passed_on = origin.kind == Origin::Kind::kPeer && !origin.in_snapshot;
  if (!decided_here && !passed_on) return;
  for (const auto& link : links_) {
    const bool has_it = passed_on && (link->id() == origin.peer || link->id() == mitigation.version.node);
    if (!has_it) link->news(mitigation, decided_here);
  }
}

void Mesh::broadcast(std::span<const Brake> brakes, NodeId from) {
  for (const auto& link : links_) {
    if (link->id() != from) link->tell(brakes);
  }
}

void Mesh::use_rules_revision(std::uint64_t revision) { context_.identity.rules_revision = revision; }

void Mesh::use_secrets(std::uint64_t first, const std::optional<wire::SecretName>& second) {
  MeshIdentity& identity = context_.identity;
  if (identity.secret_id == first && identity.second_secret == second) return;
  identity.secret_id = first;
  identity.second_secret = second;
  for (const auto& link : links_) link->greet_again();
  for (const auto& session : sessions_) {
    if (!session->is_open() || !session->is_admitted()) continue;
    if (share_a_secret(identity, context_.secrets_of_peers[session->node()])) continue;
    session->shut();
    on_closed(*session, {"its hash secrets are no longer ours"});
  }
}

void Mesh::stop() {
  ticker_.stop();
  listener_.reset();
  for (const auto& link : links_) link->say_goodbye();
  for (const auto& session : sessions_) {
    if (session->is_open()) session->say_goodbye();
  }
}

void Mesh::on_accept(std::unique_ptr<Stream> stream, const SocketAddress& remote) {
  ++counts_.accepted;
  make_room_for_one();
  auto session = std::make_unique<PeerSession>(context_, remote.text(), std::move(stream), session_events_);
  if (session->is_open()) sessions_.push_back(std::move(session));
}

// Of the address that has the most of them the oldest goes: who opens many connections and says nothing so closes his
// own, and a peer that comes from elsewhere, or is quick, gets in.
void Mesh::make_room_for_one() {
  std::map<std::string_view, std::vector<PeerSession*>> by_host;  // oldest first
  std::size_t half_open = 0;
  for (const auto& session : sessions_) {
    if (!session->is_open() || session->is_admitted()) continue;
    by_host[host_of(session->remote())].push_back(session.get());
    ++half_open;
  }
  if (half_open < kHalfOpenMax) return;
  const auto most = std::max_element(by_host.begin(), by_host.end(), [](const auto& one, const auto& other) {
    return one.second.size() < other.second.size();
  });
  ++counts_.half_open_refused;
  most->second.front()->shut();
}

Status Mesh::admit(const PeerSession& session, const wire::Hello& hello) {
  const HostInstant now = context_.reactor.host_now();
  const auto refuse = [&](std::string why) -> Status {
    ++counts_.hellos_refused;
    return Error{std::move(why)};
  };
  if (const auto version = check_hello(context_.identity, hello, std::nullopt); !version) {
    return refuse(version.error());
  }
  if (context_.transport.proves_names() && session.proven_name() != hello.node) {
    return refuse("wrong name: its hello says \"" + hello.node + "\", allowed: \"" + session.proven_name() +
                  "\", the node of its certificate");
  }
  Heard& heard = heard_.at(hello.node);  // check_hello has found it among the members
  if (now < heard.refused_until) return refuse("it sent rubbish a moment ago and has to wait");
  if (PeerSession* earlier = session_of(hello.node)) {
    const bool is_alive = now - earlier->last_heard() < kAliveWithin;
    if (is_alive && earlier->incarnation() != hello.incarnation) {
      return refuse("node name clash: a daemon named \"" + printable_ascii(hello.node) + "\" is connected from " +
                    earlier->remote());
    }
    earlier->shut();
    on_closed(*earlier, {"replaced by a newer connection from " + session.remote()});
  }
  heard.said_goodbye = false;
  heard.last = now;
  for (const auto& link : links_) {
    if (link->name() == hello.node) link->peer_is_there();
  }
  context_.secrets_of_peers[hello.node] = secrets_of(hello);
  return {};
}

void Mesh::on_closed(const PeerSession& session, const Connection::Loss& loss) {
  if (loss.rubbish) ++counts_.rubbish_cuts;
  const auto known = heard_.find(session.node());
  if (known == heard_.end()) return log_stranger(session.remote(), loss.why);
  Heard& heard = known->second;
  heard.last = session.last_heard();
  heard.said_goodbye = session.said_goodbye();
  if (session.certificate_until()) heard.certificate_until = session.certificate_until();
  add(heard.closed_counts, session.counts());
  if (loss.rubbish) {
    ++heard.rubbish_cuts;
    heard.refused_until = context_.reactor.host_now() + heard.backoff.next(context_.random);
  } else {
    heard.backoff.reset();
  }
  if (!heard.log.allow(context_.reactor.host_now())) return;
  spdlog::info("peer {} from {}: no longer heard: {}{}", session.node(), session.remote(), loss.why,
               heard.log.withheld_text());
}

void Mesh::log_stranger(const std::string& remote, const std::string& why) {
  if (!stranger_log_.allow(context_.reactor.host_now())) return;
  spdlog::warn("mesh: connection from {} ended before it was admitted: {}{}", remote, why,
               stranger_log_.withheld_text());
}

void Mesh::tick() {
  for (const auto& link : links_) link->tick();
  for (const auto& session : sessions_) {
    if (session->is_open()) session->tick();
  }
  std::erase_if(sessions_, [](const auto& session) { return !session->is_open(); });
}

PeerSession* Mesh::session_of(const std::string& node) const {
  const auto found = std::find_if(sessions_.begin(), sessions_.end(),
                                  [&](const auto& session) { return session->is_open() && session->node() == node; });
  return found == sessions_.end() ? nullptr : found->get();
}

MeshStatus Mesh::status() const {
  MeshStatus status;
  status.listen = listener_ == nullptr ? "" : listener_->address().text();
  std::size_t up_to_date = 0;
  for (const auto& link : links_) {
    PeerStatus& peer = status.peers.emplace_back();
    const Heard& heard = heard_.at(link->name());
    ConnectionCounts counts = heard.closed_counts;
    peer.last_heard = heard.last;
    peer.said_goodbye = heard.said_goodbye;
    peer.rubbish_cuts = heard.rubbish_cuts;
    peer.certificate_until = heard.certificate_until;
    if (const PeerSession* session = session_of(link->name())) {
      peer.heard = true;
      peer.last_heard = session->last_heard();
      peer.digest_equal = session->digest_equal();
      peer.figures = session->figures();
      peer.incarnation = session->incarnation();
      if (peer.figures && context_.brakes != nullptr) {
        peer.brakes_equal = peer.figures->brakes_digest == context_.brakes->digest();
      }
      peer.count_lag = session->count_lag();
      if (session->certificate_until()) peer.certificate_until = session->certificate_until();
      add(counts, session->counts());
    }
    if (peer.certificate_until) peer.certificate_left = *peer.certificate_until - context_.reactor.wall_now();
    peer.bytes_in = counts.bytes_in;
    peer.bytes_out = counts.bytes_out;
    peer.frames_in = counts.frames_in;
    peer.frames_out = counts.frames_out;
    link->describe(peer);
    if (const auto known = context_.secrets_of_peers.find(link->name()); known != context_.secrets_of_peers.end()) {
      peer.secrets = known->second;
      peer.counts_alike = count_alike(context_.identity, known->second);
    }
    if (peer.up_to_date) ++up_to_date;
  }
  if (!links_.empty()) status.coverage = static_cast<double>(up_to_date) / static_cast<double>(links_.size());
  return status;
}

std::uint16_t Mesh::listen_port() const {
  return listener_ == nullptr ? std::uint16_t{0} : listener_->address().port();
}

void Mesh::visit(const MetricVisitor& visitor) const {
  MeshCounts counts = counts_;
  counts.accept_failures = listener_ == nullptr ? 0 : listener_->failures();
  visit_mesh(status(), counts, visitor);
}

}  // namespace popgate
