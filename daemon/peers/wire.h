// SPDX-License-Identifier: Apache-2.0
//
// The messages of the mesh as plain values, and their translation to and from bytes (mesh.proto).
//
// Between machines an entry's end travels as what remains of it; `Entry::remaining` is that, and the entry's own
// `until` means nothing here.
//
// Threads: pure functions.
// Invariants: 1. decode() accepts nothing that breaks a limit below, whatever the bytes are.
//             2. decode(encode(m)) gives m.
// Limits: kNameBytesMax a name, kMembersMax members, kSecretsMax secrets, kReasonBytesMax a reason, kRemainingMax a
//         duration, kBrakesInMessageMax brakes, kRuleFiguresMax rules' figures, kLaggingShardsMax shards.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "daemon/count/count_lag.h"
#include "daemon/mitigate/brakes.h"
#include "daemon/mitigate/mitigations.h"
#include "daemon/result.h"

namespace popgate::wire {

inline constexpr std::size_t kNameBytesMax = 64;
inline constexpr std::size_t kMembersMax = 256;
inline constexpr std::size_t kSecretsMax = 8;
inline constexpr std::size_t kLaggingShardsMax = 256;
inline constexpr std::uint64_t kUncertainMax = std::uint64_t{1} << 48;  // so that sums over peers cannot wrap
inline constexpr microseconds kRemainingMax = 2 * kLiftKept;            // either way; the set cuts it further

/// One of a node's secrets, by its id; counted: the node counts hits under it.
struct SecretName {
  std::uint64_t id = 0;
  bool counted = true;
  friend bool operator==(const SecretName&, const SecretName&) = default;
};

struct Hello {
  std::uint32_t version_min = 0;
  std::uint32_t version_max = 0;
  std::string pop;
  std::string node;
  std::uint64_t incarnation = 0;
  std::uint64_t secret_id = 0;
  std::uint64_t rules_revision = 0;
  std::vector<std::string> members;
  HostInstant host{};                 // the sender's
  std::vector<SecretName> secrets{};  // secret_id's first; empty from earlier releases, which have that one only
};

struct Refused {
  std::string reason;
};

struct Entry {
  std::uint64_t sequence = 0;
  HostInstant host{};  // the sender's, when `remaining` was computed
  bool in_snapshot = false;
  microseconds remaining{0};
  Mitigation mitigation;
};

struct SnapshotEnd {
  std::uint64_t sequence = 0;
  HostInstant host{};
  std::uint64_t buckets = 0;
  Digest digest;
};

inline constexpr std::size_t kRuleFiguresMax = 64;
inline constexpr std::size_t kBrakesInMessageMax = 128;  // of the longest, 46 KiB

struct RuleFigures {
  RuleId rule = 0;
  std::uint64_t would_block = 0;
};

/// What a node tells of itself beside its set; counts are since the daemon's start.
struct NodeFigures {
  std::uint64_t brakes_digest = 0;
  std::uint64_t not_enforced = 0;
  std::uint64_t requests = 0;
  std::vector<RuleFigures> rules;
};

struct Heartbeat {
  HostInstant host{};
  PopInstant wall{};
  std::uint64_t sequence = 0;
  std::uint64_t rules_revision = 0;
  std::optional<Digest> digest;
  std::optional<NodeFigures> figures;
  std::optional<CountLag> count_lag{};
  std::optional<PopInstant> certificate_until{};  // the sender's, or a CA's above it
};

struct Ack {
  std::uint64_t sequence = 0;
  HostInstant echoed{};  // the dialler's own clock, from the heartbeat that this answers; 0: none
  PopInstant wall{};
  std::uint64_t rules_revision = 0;
  std::uint64_t resend_buckets = 0;
};

struct Goodbye {};

struct Brakes {
  std::vector<Brake> brakes;
};

/// Of a later release: skipped.
struct UnknownKind {};

using Message = std::variant<UnknownKind, Hello, Refused, Entry, SnapshotEnd, Heartbeat, Ack, Goodbye, Brakes>;

/// For log lines and errors: "hello".
[[nodiscard]] std::string_view kind_name(const Message& message);

[[nodiscard]] std::string encode(const Message& message);
/// The error names the field, what was found and what is allowed.
[[nodiscard]] Result<Message> decode(std::string_view bytes);

}  // namespace popgate::wire
