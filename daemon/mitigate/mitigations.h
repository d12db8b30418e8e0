// SPDX-License-Identifier: Apache-2.0
//
// The set of mitigations of this node: decided here, said by an operator, merged from peers, restored from the record
// file. Every node ends with the same set, whatever was lost, repeated or reordered on the way.
//
// For each key there are three entries at most: an automatic decision, an operator's block, and the last lift. Each is
// a register that only moves forward: the higher version stands (lift epoch, counter, node, incarnation; content when
// they are equal), and of one version the earlier end. A lift raises the key's epoch, and every decision carries the
// epoch that its decider knew, so that a lift removes every decision made without knowing it, also one that arrives
// later. The counter is a Lamport clock: it is past every counter this node has seen, so that its next decision stands
// over what it knows.
//
// Passing news on is the caller's: on_change is told of every accepted change, and daemon.cc hands all that is not
// restored, ended or rejudged to Mesh::broadcast. News that changes nothing is not reported, and so dies out.
//
// Threads: the event loop's. on_change may read the set, not change it.
// Invariants: 1. No end moves later without a new version (expiry cannot creep). A restart forgets what an entry had
//                replaced: a copy of that, kept by a node that was out of reach, may then live to its own end.
//             2. A live entry is never evicted.
//             3. No decision of an epoch below the key's lift is held.
// Limits: `entries_max` automatic entries: beyond it ended ones are forgotten early, then decisions are refused and
//         counted. kOperatorEntriesMax blocks and as many lifts, apart, so that a flood of clients cannot keep an
//         operator from acting. Ends: kMitigationMax; kLiftKept for a lift. kExpirePerCall entries a call of expire().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>

#include "daemon/metrics.h"
#include "daemon/mitigate/entry_table.h"
#include "daemon/mitigate/judge.h"
#include "daemon/mitigate/mitigation.h"
#include "daemon/mitigate/mitigation_counts.h"
#include "daemon/result.h"

namespace popgate {

inline constexpr std::size_t kAutomaticEntriesMax = 262144;
inline constexpr std::size_t kOperatorEntriesMax = 65536;
inline constexpr std::size_t kExpirePerCall = 4096;
inline constexpr std::size_t kReasonBytesMax = 256;
/// Copies of one entry end at most this long after each other: a frame's delay beyond the fastest is subtracted, so
/// what remains is a handshake's time-out for each node that passed a copy on.
inline constexpr std::chrono::seconds kEndedKept{60};
/// No decision made before a lift, by a node that had not heard of it, can live longer.
inline constexpr microseconds kLiftKept = kMitigationMax + kEndedKept;
/// Two copies of one entry whose ends differ by less are not worth a message.
inline constexpr milliseconds kEndSlack{50};
/// A live mitigation is lengthened by at least this, so that hits still under way do not make a stream of decisions.
inline constexpr milliseconds kRenewalMin{250};
/// How far ahead of everything seen a peer's counter may be. No PoP decides 2^40 times (35 years at 1,000 a second); a
/// damaged counter would otherwise take the rest of the range away from everybody.
inline constexpr std::uint64_t kCounterLeapMax = std::uint64_t{1} << 40;
/// The year 2255 in microseconds. Not tied to this node's wall clock, which may be the one that is wrong.
inline constexpr std::uint64_t kEpochMax = std::uint64_t{1} << 53;

struct Origin {
  enum class Kind : std::uint8_t {
    kLocal,     // decided, blocked or lifted here
    kPeer,      // merged from `peer`
    kRestored,  // from the record file
    kEnded,     // reached its end: what else holds for the key takes over
    kRules,     // its effect changed with this node's rules
  };
  Kind kind = Kind::kLocal;
  NodeId peer = 0;           // kPeer
  bool in_snapshot = false;  // kPeer: part of a snapshot, which other peers get in their own
};

enum class DecideOutcome : std::uint8_t { kDecided, kRenewed, kAlreadyLive, kFull, kUnready };
enum class MergeOutcome : std::uint8_t { kChanged, kUnchanged, kRefused };

/// Every entry of a key; null: none. Ended ones are there until they are forgotten.
struct KeyEntries {
  const Mitigation* automatic = nullptr;
  const Mitigation* by_operator = nullptr;
  const Mitigation* lift = nullptr;
};

class Mitigations {
 public:
  struct Options {
    std::string node_name;
    std::uint64_t incarnation = 0;  // the daemon's start in microseconds: differs from every earlier one of this node
    std::size_t entries_max = kAutomaticEntriesMax;
  };
  using OnChange = std::function<void(const Mitigation&, const Origin&)>;

  Mitigations(Options options, OnChange on_change);
  Mitigations(const Mitigations&) = delete;
  Mitigations& operator=(const Mitigations&) = delete;

  // Where entries come from.
  struct Decision {
    Key key;
    const Rule& rule;
    Evidence evidence;
    Judgement judgement;
  };
  /// A new automatic mitigation; nothing while one is in force that is long enough.
  DecideOutcome decide(const Decision& decision, HostInstant now, PopInstant wall);

  /// Counts a decision that a rule which is open without counters did not make.
  void withhold() { ++counts_.withheld_open; }

  struct Block {
    Key key;
    RuleId rule = 0;           // 0: outside every rule
    microseconds duration{0};  // capped at kMitigationMax
    std::string reason;        // cut at kReasonBytesMax
  };
  [[nodiscard]] Status block(const Block& block, HostInstant now, PopInstant wall);

  struct Lift {
    Key key;
    PopInstant watermark{};  // hits up to it no longer count for the key
    std::string reason;
  };
  [[nodiscard]] Status lift(const Lift& lift, HostInstant now, PopInstant wall);

  /// Whether an order on all of these keys would be taken: of several, all are, or none is asked for.
  [[nodiscard]] Status can_order(EntryKind kind, std::span<const Key> keys) const;

  /// `entry.until` is on this host's clock already.
  MergeOutcome merge(Mitigation entry, const Origin& from, HostInstant now);
  /// An entry of the record file, with `until` on this host's clock; one that ended within kEndedKept counts too.
  void restore(Mitigation entry, HostInstant now);
  /// From now on this node may decide: its record file is restored, or a peer's snapshot is complete, or the operator
  /// says that it starts afresh. `counter_at_least`: what the record file says of its own counter, else 0.
  void allow_originating(std::uint64_t counter_at_least);
  [[nodiscard]] bool may_originate() const { return may_originate_; }

  // What applies.
  /// Judges every automatic entry by these rules; on_change hears of those whose effect differs.
  void use_rules(SharedRules rules, HostInstant now);
  /// What these rules decided does not block (brakes.h), so it lengthens no operator's block of its keys; on_change
  /// hears of those whose effect differs.
  void use_turned_off(std::unordered_set<RuleId> rules, HostInstant now);
  [[nodiscard]] std::optional<Enforcement> enforcement(const Key& key, HostInstant now) const;
  [[nodiscard]] std::optional<PopInstant> watermark(const Key& key) const;
  /// Ends and forgets what is due, at most kExpirePerCall entries. True when more is due.
  bool expire(HostInstant now);

  // To look.
  [[nodiscard]] KeyEntries find(const Key& key) const;
  [[nodiscard]] const Mitigation* find_entry(const EntryId& id) const;
  struct Filter {
    std::optional<EntryKind> kind;
    std::optional<RuleId> rule;
    bool ended = false;  // ended ones too
  };
  void for_each(const Filter& filter, const std::function<void(const Mitigation&)>& visit) const;
  [[nodiscard]] std::vector<EntryId> ids(std::uint64_t buckets) const { return table_.ids(buckets); }
  [[nodiscard]] std::size_t live_count(EntryKind kind) const { return table_.count(kind) - table_.ended_count(kind); }
  [[nodiscard]] const Digest& digest() const { return table_.digest(); }
  [[nodiscard]] std::uint64_t counter() const { return counter_; }
  [[nodiscard]] NodeId node() const { return node_; }
  void visit(const MetricVisitor& visitor) const;

 private:
  [[nodiscard]] Mitigation originate(const Key& key, EntryKind kind, PopInstant wall);
  [[nodiscard]] std::optional<Enforcement> automatic_enforcement(const Key& key, HostInstant now) const;
  [[nodiscard]] bool is_turned_off(const Key& key) const;
  [[nodiscard]] std::uint64_t epoch_of(const Key& key) const;
  [[nodiscard]] std::size_t most(EntryKind kind) const;
  [[nodiscard]] bool make_room(EntryKind kind);
  [[nodiscard]] bool is_believable(const Mitigation& entry);
  MergeOutcome merge_into(Mitigation entry, const Origin& from, HostInstant now);
  MergeOutcome join(const Entry& held, const Mitigation& copy, const Origin& from, HostInstant now);
  void store(Mitigation entry, const Origin& from, HostInstant now);
  void remove_beaten(const Key& key, std::uint64_t epoch);

  Options options_;
  OnChange on_change_;
  NodeId node_;
  SharedRules rules_;
  std::unordered_set<RuleId> turned_off_;
  EntryTable table_;
  std::uint64_t counter_ = 0;
  bool may_originate_ = false;
  MitigationCounts counts_;
};

}  // namespace popgate
