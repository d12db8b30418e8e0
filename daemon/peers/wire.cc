// SPDX-License-Identifier: Apache-2.0
#include "daemon/peers/wire.h"

#include <algorithm>
#include <cmath>

#include "daemon/peers/wire_brakes.h"
#include "mesh.pb.h"

namespace popgate::wire {
namespace {

// ---- Plain values to protobuf.

std::int64_t us(HostInstant t) { return t.time_since_epoch().count(); }
std::int64_t us(PopInstant t) { return t.time_since_epoch().count(); }

void put(const Digest& digest, mesh::Digest& out) {
  for (const std::uint64_t bucket : digest.buckets) out.add_buckets(bucket);
  out.set_entries(digest.entries);
}

void put(const UnknownKind& /*message*/, mesh::Envelope& /*out*/) {}

void put(const Hello& hello, mesh::Envelope& envelope) {
  mesh::Hello& out = *envelope.mutable_hello();
  out.set_version_min(hello.version_min);
  out.set_version_max(hello.version_max);
  out.set_pop(hello.pop);
  out.set_node(hello.node);
  out.set_incarnation(hello.incarnation);
  out.set_secret_id(hello.secret_id);
  out.set_rules_revision(hello.rules_revision);
  for (const std::string& member : hello.members) out.add_members(member);
  out.set_host_us(us(hello.host));
  for (const SecretName& secret : hello.secrets) {
    mesh::SecretName& name = *out.add_secrets();
    name.set_id(secret.id);
    name.set_counted(secret.counted);
  }
}

void put(const Refused& refused, mesh::Envelope& envelope) { envelope.mutable_refused()->set_reason(refused.reason); }

void put(const Entry& entry, mesh::Envelope& envelope) {
  const Mitigation& m = entry.mitigation;
  mesh::Entry& out = *envelope.mutable_entry();
  out.set_sequence(entry.sequence);
  out.set_host_us(us(entry.host));
  out.set_in_snapshot(entry.in_snapshot);
  out.set_key_hi(m.key.hi);
  out.set_key_lo(m.key.lo);
  out.set_by_operator(m.space == Space::kOperator);
  out.set_lifted(m.lifted);
  out.set_rule(m.rule);
  out.set_rule_revision(m.rule_revision);
  mesh::Version& version = *out.mutable_version();
  version.set_epoch(m.version.epoch);
  version.set_counter(m.version.counter);
  version.set_node(m.version.node);
  version.set_incarnation(m.version.incarnation);
  out.set_remaining_us(entry.remaining.count());
  out.set_until_wall_us(us(m.until_wall));
  out.set_decided_at_us(us(m.decided_at));
  out.set_decided_by(m.decided_by);
  out.set_reason(m.reason);
  mesh::Evidence& evidence = *out.mutable_evidence();
  evidence.set_lo(m.evidence.lo);
  evidence.set_estimate(m.evidence.estimate);
  if (m.evidence.hi) evidence.set_hi(*m.evidence.hi);
  evidence.set_limit(m.evidence.limit);
  out.set_decided_under(static_cast<std::uint32_t>(m.evidence.under));
}

void put(const SnapshotEnd& end, mesh::Envelope& envelope) {
  mesh::SnapshotEnd& out = *envelope.mutable_snapshot_end();
  out.set_sequence(end.sequence);
  out.set_host_us(us(end.host));
  out.set_buckets(end.buckets);
  put(end.digest, *out.mutable_digest());
}

void put(const CountLag& lag, mesh::CountLag& out) {
  out.set_ring(lag.ring);
  for (const ShardLag& shard : lag.shards) {
    mesh::ShardLag& told = *out.add_shards();
    told.set_shard(shard.shard);
    told.set_waiting_us(static_cast<std::uint64_t>(shard.waiting.count()));
    told.set_uncertain_most(shard.uncertain_most);
    told.set_uncertain_until_us(us(shard.uncertain_until));
  }
}

void put(const Heartbeat& beat, mesh::Envelope& envelope) {
  mesh::Heartbeat& out = *envelope.mutable_heartbeat();
  out.set_host_us(us(beat.host));
  out.set_wall_us(us(beat.wall));
  out.set_sequence(beat.sequence);
  out.set_rules_revision(beat.rules_revision);
  if (beat.digest) put(*beat.digest, *out.mutable_digest());
  if (beat.figures) put(*beat.figures, *out.mutable_figures());
  if (beat.count_lag) put(*beat.count_lag, *out.mutable_count_lag());
  if (beat.certificate_until) out.set_certificate_until_us(us(*beat.certificate_until));
}

void put(const Ack& ack, mesh::Envelope& envelope) {
  mesh::Ack& out = *envelope.mutable_ack();
  out.set_sequence(ack.sequence);
  out.set_echoed_host_us(us(ack.echoed));
  out.set_wall_us(us(ack.wall));
  out.set_rules_revision(ack.rules_revision);
  out.set_resend_buckets(ack.resend_buckets);
}

void put(const Goodbye& /*message*/, mesh::Envelope& envelope) { (void)envelope.mutable_goodbye(); }

void put(const Brakes& brakes, mesh::Envelope& envelope) { put(brakes, *envelope.mutable_brakes()); }

// ---- Protobuf to plain values. Each take() returns a sentence when something breaks a limit, else nothing.

using Fault = std::optional<std::string>;

Fault too_long(const char* field, std::size_t found, std::size_t allowed) {
  if (found <= allowed) return std::nullopt;
  return std::string(field) + ": found " + std::to_string(found) + ", allowed: at most " + std::to_string(allowed);
}

// Instants are cut to a range in which sums cannot overflow; what they mean is checked by whoever uses them.
std::int64_t in_range(std::int64_t value) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  return std::clamp(value, -kMost, kMost);
}
HostInstant host_at(std::int64_t value) { return HostInstant(microseconds(in_range(value))); }
PopInstant wall_at(std::int64_t value) { return PopInstant(microseconds(in_range(value))); }

Fault take(const mesh::Digest& in, Digest& digest) {
  if (in.buckets_size() != static_cast<int>(kDigestBuckets)) {
    return "digest.buckets: found " + std::to_string(in.buckets_size()) +
           ", allowed: " + std::to_string(kDigestBuckets);
  }
  std::copy(in.buckets().begin(), in.buckets().end(), digest.buckets.begin());
  digest.entries = in.entries();
  return std::nullopt;
}

Fault take(const mesh::Hello& in, Hello& hello) {
  if (const Fault fault = too_long("hello.pop bytes", in.pop().size(), kNameBytesMax)) return fault;
  if (const Fault fault = too_long("hello.node bytes", in.node().size(), kNameBytesMax)) return fault;
  if (const Fault fault = too_long("hello.members", static_cast<std::size_t>(in.members_size()), kMembersMax))
    return fault;
  for (const std::string& member : in.members()) {
    if (const Fault fault = too_long("hello.members bytes", member.size(), kNameBytesMax)) return fault;
    hello.members.push_back(member);
  }
  hello.version_min = in.version_min();
  hello.version_max = in.version_max();
  hello.pop = in.pop();
  hello.node = in.node();
  hello.incarnation = in.incarnation();
  hello.secret_id = in.secret_id();
  hello.rules_revision = in.rules_revision();
  hello.host = host_at(in.host_us());
  if (const Fault fault = too_long("hello.secrets", static_cast<std::size_t>(in.secrets_size()), kSecretsMax))
    return fault;
  for (const mesh::SecretName& secret : in.secrets()) hello.secrets.push_back({secret.id(), secret.counted()});
  return std::nullopt;
}

Fault take(const mesh::Refused& in, Refused& refused) {
  refused.reason = in.reason().substr(0, kReasonBytesMax);
  return std::nullopt;
}

Fault take(const mesh::Evidence& in, Evidence& evidence) {
  if (!std::isfinite(in.estimate()) || in.estimate() < 0) {
    return "entry.evidence.estimate: found " + std::to_string(in.estimate()) + ", allowed: a finite number from 0";
  }
  evidence.lo = in.lo();
  evidence.estimate = in.estimate();
  if (in.has_hi()) evidence.hi = in.hi();
  evidence.limit = in.limit();
  return std::nullopt;
}

Fault take(const mesh::Entry& in, Entry& entry) {
  if (const Fault fault = too_long("entry.decided_by bytes", in.decided_by().size(), kNameBytesMax)) return fault;
  if (const Fault fault = too_long("entry.reason bytes", in.reason().size(), kReasonBytesMax)) return fault;
  if (!in.has_version()) return "entry.version: found none, allowed: one";
  entry.sequence = in.sequence();
  entry.host = host_at(in.host_us());
  entry.in_snapshot = in.in_snapshot();
  entry.remaining = std::clamp(microseconds(in.remaining_us()), -kRemainingMax, kRemainingMax);
  Mitigation& m = entry.mitigation;
  m.key = {in.key_hi(), in.key_lo()};
  m.space = in.by_operator() ? Space::kOperator : Space::kAutomatic;
  m.lifted = in.lifted();
  m.rule = in.rule();
  m.rule_revision = in.rule_revision();
  m.version = {in.version().epoch(), in.version().counter(), in.version().node(), in.version().incarnation()};
  m.until_wall = wall_at(in.until_wall_us());
  m.decided_at = wall_at(in.decided_at_us());
  m.decided_by = in.decided_by();
  m.reason = in.reason();
  // What a later release says more exactly was decided without the counters, whatever it is.
  m.evidence.under = static_cast<DecidedUnder>(
      in.decided_under() < kDecidedUnders ? in.decided_under() : static_cast<std::uint32_t>(DecidedUnder::kLocal));
  return take(in.evidence(), m.evidence);
}

Fault take(const mesh::SnapshotEnd& in, SnapshotEnd& end) {
  end.sequence = in.sequence();
  end.host = host_at(in.host_us());
  end.buckets = in.buckets();
  return take(in.digest(), end.digest);
}

Fault take(const mesh::CountLag& in, CountLag& lag) {
  if (const Fault fault =
          too_long("heartbeat.count_lag.shards", static_cast<std::size_t>(in.shards_size()), kLaggingShardsMax))
    return fault;
  lag.ring = in.ring();
  for (const mesh::ShardLag& told : in.shards()) {
    if (told.shard() > UINT16_MAX) {
      return "heartbeat.count_lag.shards.shard: found " + std::to_string(told.shard()) + ", allowed: 0 to 65535";
    }
    const auto waiting = std::min(told.waiting_us(), static_cast<std::uint64_t>(kRemainingMax.count()));
    lag.shards.push_back({.shard = static_cast<ShardIndex>(told.shard()),
                          .waiting = microseconds(static_cast<std::int64_t>(waiting)),
                          .uncertain_most = std::min(told.uncertain_most(), kUncertainMax),
                          .uncertain_until = wall_at(told.uncertain_until_us())});
  }
  return std::nullopt;
}

Fault take(const mesh::Heartbeat& in, Heartbeat& beat) {
  beat.host = host_at(in.host_us());
  beat.wall = wall_at(in.wall_us());
  beat.sequence = in.sequence();
  beat.rules_revision = in.rules_revision();
  if (in.certificate_until_us() != 0) beat.certificate_until = wall_at(in.certificate_until_us());
  if (in.has_figures()) {
    if (const Fault fault = take(in.figures(), beat.figures.emplace())) return fault;
  }
  if (in.has_count_lag()) {
    if (const Fault fault = take(in.count_lag(), beat.count_lag.emplace())) return fault;
  }
  return in.has_digest() ? take(in.digest(), beat.digest.emplace()) : std::nullopt;
}

Fault take(const mesh::Ack& in, Ack& ack) {
  ack.sequence = in.sequence();
  ack.echoed = host_at(in.echoed_host_us());
  ack.wall = wall_at(in.wall_us());
  ack.rules_revision = in.rules_revision();
  ack.resend_buckets = in.resend_buckets();
  return std::nullopt;
}

Fault take(const mesh::Goodbye& /*in*/, Goodbye& /*out*/) { return std::nullopt; }

template <typename Kind, typename In>
Result<Message> taken(const In& in) {
  Kind kind;
  if (const Fault fault = take(in, kind)) return Error{*fault};
  return Message(std::move(kind));
}

}  // namespace

std::string_view kind_name(const Message& message) {
  static constexpr std::string_view kNames[] = {"unknown",   "hello", "refused", "entry", "snapshot end",
                                                "heartbeat", "ack",   "goodbye", "brakes"};
  static_assert(std::size(kNames) == std::variant_size_v<Message>);
  return kNames[message.index()];
}

std::string encode(const Message& message) {
  mesh::Envelope envelope;
  std::visit([&](const auto& kind) { put(kind, envelope); }, message);
  return envelope.SerializeAsString();
}

Result<Message> decode(std::string_view bytes) {
  mesh::Envelope envelope;
  if (!envelope.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Error{"found " + std::to_string(bytes.size()) + " bytes that are no envelope"};
  }
  switch (envelope.kind_case()) {
    case mesh::Envelope::kHello:
      return taken<Hello>(envelope.hello());
    case mesh::Envelope::kRefused:
      return taken<Refused>(envelope.refused());
    case mesh::Envelope::kEntry:
      return taken<Entry>(envelope.entry());
    case mesh::Envelope::kSnapshotEnd:
      return taken<SnapshotEnd>(envelope.snapshot_end());
    case mesh::Envelope::kHeartbeat:
      return taken<Heartbeat>(envelope.heartbeat());
    case mesh::Envelope::kAck:
      return taken<Ack>(envelope.ack());
    case mesh::Envelope::kGoodbye:
      return taken<Goodbye>(envelope.goodbye());
    case mesh::Envelope::kBrakes:
      return taken<Brakes>(envelope.brakes());
    case mesh::Envelope::KIND_NOT_SET:
      return Message(UnknownKind{});
  }
  return Message(UnknownKind{});
}

}  // namespace popgate::wire
