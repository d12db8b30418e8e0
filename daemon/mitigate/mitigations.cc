// SPDX-License-Identifier: Apache-2.0
#include "daemon/mitigate/mitigations.h"

#include <algorithm>
#include <utility>

#include "daemon/mitigate/applied.h"
#include "daemon/mitigate/precedence.h"

namespace popgate {
namespace {

using std::chrono::seconds;

constexpr const char* kStillLearning =
    "this node is still learning from its peers what is in force; try again in a moment";

std::string full_text(EntryKind kind) {
  return std::to_string(kOperatorEntriesMax) + (kind == EntryKind::kLift
                                                    ? " lifts of the last 14 days are kept, no more can be"
                                                    : " operators' blocks are live, no more are kept");
}

constexpr const char* kKindNames[kEntryKinds] = {"automatic", "operator", "lift"};

// Long enough: a client that waits is admitted at its end, and it lasts at least 7/8 of what a new one would. Under
// `count: all` the denied request that is told the end counts, too, and must not begin the same mitigation again.
bool is_long_enough(const Mitigation& held, HostInstant end, const Mitigations::Decision& decision, HostInstant now) {
  const Judgement& judgement = decision.judgement;
  if (end < judgement.admitted_from) return false;
  const bool tells_its_end = decision.rule.count == CountMode::kAll && held.evidence.under == decision.evidence.under;
  return tells_its_end || end + (judgement.until - now) / 8 >= judgement.until;
}

std::uint64_t epoch_at(PopInstant watermark) {
  const std::int64_t us = watermark.time_since_epoch().count();
  return us <= 0 ? 0 : std::min(static_cast<std::uint64_t>(us), kEpochMax);
}

PopInstant watermark_of(std::uint64_t epoch) { return PopInstant(microseconds(static_cast<std::int64_t>(epoch))); }

microseconds longest(EntryKind kind) { return kind == EntryKind::kLift ? kLiftKept : microseconds(kMitigationMax); }

// What a peer may say freely is cut to what this node would have said itself.
void normalise(Mitigation& entry, HostInstant now) {
  if (entry.lifted) entry.space = Space::kOperator;
  entry.watermark = entry.lifted ? watermark_of(entry.version.epoch) : PopInstant{};
  if (entry.reason.size() > kReasonBytesMax) entry.reason.resize(kReasonBytesMax);
  if (entry.decided_by.size() > kReasonBytesMax) entry.decided_by.resize(kReasonBytesMax);
  entry.until = std::min(entry.until, now + longest(kind_of(entry)));
}

}  // namespace

Mitigations::Mitigations(Options options, OnChange on_change)
    : options_(std::move(options)), on_change_(std::move(on_change)), node_(node_id(options_.node_name)) {}

DecideOutcome Mitigations::decide(const Decision& decision, HostInstant now, PopInstant wall) {
  if (!may_originate_) {
    ++counts_.refused_unready;
    return DecideOutcome::kUnready;
  }
  const Entry* held = table_.find({decision.key, EntryKind::kAutomatic});
  HostInstant until = decision.judgement.until;
  const auto applied = held == nullptr ? std::nullopt : apply_rules(held->mitigation, rules_.get());
  const bool renews = applied && applied->until > now;
  if (renews) {
    if (is_long_enough(held->mitigation, applied->until, decision, now)) {
      ++counts_.already_live;
      return DecideOutcome::kAlreadyLive;
    }
    until = std::max(until, applied->until + kRenewalMin);
  }
  if (held == nullptr && !make_room(EntryKind::kAutomatic)) {
    ++counts_.refused_full;
    return DecideOutcome::kFull;
  }
  Mitigation entry = originate(decision.key, EntryKind::kAutomatic, wall);
  entry.rule = decision.rule.id;
  entry.rule_revision = decision.rule.revision;
  entry.evidence = decision.evidence;
  entry.until = std::min(until, now + kMitigationMax);
  entry.until_wall = wall + (entry.until - now);
  ++(renews ? counts_.renewed : counts_.decided);
  ++counts_.decided_under[static_cast<std::size_t>(decision.evidence.under)];
  store(std::move(entry), Origin{}, now);
  return renews ? DecideOutcome::kRenewed : DecideOutcome::kDecided;
}

Status Mitigations::block(const Block& block, HostInstant now, PopInstant wall) {
  if (block.duration.count() <= 0) {
    return Error{"duration: found " + std::to_string(block.duration.count()) + " us, allowed: more than 0"};
  }
  if (!may_originate_) {
    ++counts_.refused_unready;
    return Error{kStillLearning};
  }
  if (table_.find({block.key, EntryKind::kOperator}) == nullptr && !make_room(EntryKind::kOperator)) {
    ++counts_.refused_full;
    return Error{full_text(EntryKind::kOperator)};
  }
  Mitigation entry = originate(block.key, EntryKind::kOperator, wall);
  entry.rule = block.rule;
  entry.reason = block.reason.substr(0, kReasonBytesMax);
  const microseconds lasting = std::min<microseconds>(block.duration, kMitigationMax);
  entry.until = now + lasting;
  entry.until_wall = wall + lasting;
  ++counts_.blocked;
  store(std::move(entry), Origin{}, now);
  return {};
}

Status Mitigations::lift(const Lift& lift, HostInstant now, PopInstant wall) {
  if (!may_originate_) {
    ++counts_.refused_unready;
    return Error{kStillLearning};
  }
  if (table_.find({lift.key, EntryKind::kLift}) == nullptr && !make_room(EntryKind::kLift)) {
    ++counts_.refused_full;
    return Error{full_text(EntryKind::kLift)};
  }
  Mitigation entry = originate(lift.key, EntryKind::kLift, wall);
  entry.version.epoch = std::max(entry.version.epoch + 1, epoch_at(lift.watermark));
  entry.watermark = watermark_of(entry.version.epoch);
  entry.reason = lift.reason.substr(0, kReasonBytesMax);
  entry.until = now + kLiftKept;
  entry.until_wall = wall + kLiftKept;
  ++counts_.lifted;
  store(std::move(entry), Origin{}, now);
  return {};
}

Status Mitigations::can_order(EntryKind kind, std::span<const Key> keys) const {
  if (!may_originate_) return Error{kStillLearning};
  const auto fresh = static_cast<std::size_t>(std::ranges::count_if(keys, [&](const Key& key) {
    return table_.find({key, kind}) == nullptr;
  }));
  const std::size_t live = table_.count(kind) - table_.ended_count(kind);  // ended ones make room
  if (live + fresh <= most(kind)) return {};
  return Error{full_text(kind)};
}

MergeOutcome Mitigations::merge(Mitigation entry, const Origin& from, HostInstant now) {
  if (!is_believable(entry)) return MergeOutcome::kRefused;
  return merge_into(std::move(entry), from, now);
}

void Mitigations::restore(Mitigation entry, HostInstant now) {
  // The outcome does not matter: an entry that changes nothing has ended, or is there twice.
  (void)merge_into(std::move(entry), Origin{Origin::Kind::kRestored}, now);
}

void Mitigations::allow_originating(std::uint64_t counter_at_least) {
  counter_ = std::max(counter_, counter_at_least);
  may_originate_ = true;
}

void Mitigations::use_rules(SharedRules rules, HostInstant now) {
  const SharedRules before = std::exchange(rules_, std::move(rules));
  table_.for_each([&](const Entry& entry) {
    const Mitigation& m = entry.mitigation;
    if (entry.ended || m.until <= now || kind_of(m) != EntryKind::kAutomatic) return;
    if (apply_rules(m, before.get()) == apply_rules(m, rules_.get())) return;
    ++counts_.rejudged;
    on_change_(m, Origin{Origin::Kind::kRules});
  });
}

void Mitigations::use_turned_off(std::unordered_set<RuleId> rules, HostInstant now) {
  const std::unordered_set<RuleId> before = std::exchange(turned_off_, std::move(rules));
  if (before == turned_off_) return;
  table_.for_each([&](const Entry& entry) {
    const Mitigation& m = entry.mitigation;
    if (entry.ended || m.until <= now || kind_of(m) != EntryKind::kOperator) return;
    const Entry* automatic = table_.find({m.key, EntryKind::kAutomatic});
    if (automatic == nullptr) return;
    const RuleId rule = automatic->mitigation.rule;
    if (before.contains(rule) != turned_off_.contains(rule)) on_change_(m, Origin{Origin::Kind::kRules});
  });
}

std::optional<Enforcement> Mitigations::automatic_enforcement(const Key& key, HostInstant now) const {
  const Entry* automatic = table_.find({key, EntryKind::kAutomatic});
  if (automatic == nullptr) return std::nullopt;
  const auto applied = apply_rules(automatic->mitigation, rules_.get());
  if (!applied || applied->until <= now) return std::nullopt;
  return Enforcement{key, applied->rule, applied->until, applied->log_only, false};
}

std::optional<Enforcement> Mitigations::enforcement(const Key& key, HostInstant now) const {
  const std::optional<Enforcement> automatic = automatic_enforcement(key, now);
  const Entry* by_operator = table_.find({key, EntryKind::kOperator});
  if (by_operator != nullptr && by_operator->mitigation.until > now) {
    const Mitigation& m = by_operator->mitigation;
    const Rule* rule = rules_ == nullptr ? nullptr : rules_->by_id(m.rule);
    // Neither shortens the other: what blocks longer is what a client is told.
    const bool both_block = automatic && !automatic->log_only && !is_turned_off(key);
    const HostInstant until = both_block ? std::max(m.until, automatic->until) : m.until;
    return Enforcement{key, rule == nullptr ? RuleNumber{0} : rule->number, until, false, true};
  }
  return automatic;
}

bool Mitigations::is_turned_off(const Key& key) const {
  const Entry* automatic = table_.find({key, EntryKind::kAutomatic});
  return automatic != nullptr && turned_off_.contains(automatic->mitigation.rule);
}

std::optional<PopInstant> Mitigations::watermark(const Key& key) const {
  const std::uint64_t epoch = epoch_of(key);  // a decision may have come before the lift that it knew
  if (epoch == 0) return std::nullopt;
  return watermark_of(epoch);
}

bool Mitigations::expire(HostInstant now) {
  for (std::size_t i = 0; i < kExpirePerCall; ++i) {
    const auto id = table_.due(now);
    if (!id) return false;
    const Entry* entry = table_.find(*id);
    if (entry->ended) {
      table_.erase(*id);
      continue;
    }
    ++counts_.ended;
    table_.mark_ended(*id);
    on_change_(entry->mitigation, Origin{Origin::Kind::kEnded});
  }
  return table_.due(now).has_value();
}

KeyEntries Mitigations::find(const Key& key) const {
  return {find_entry(EntryId{key, EntryKind::kAutomatic}), find_entry(EntryId{key, EntryKind::kOperator}),
          find_entry(EntryId{key, EntryKind::kLift})};
}

const Mitigation* Mitigations::find_entry(const EntryId& id) const {
  const Entry* entry = table_.find(id);
  return entry == nullptr ? nullptr : &entry->mitigation;
}

void Mitigations::for_each(const Filter& filter, const std::function<void(const Mitigation&)>& visit) const {
  table_.for_each([&](const Entry& entry) {
    if (entry.ended && !filter.ended) return;
    if (filter.kind && kind_of(entry.mitigation) != *filter.kind) return;
    if (filter.rule && entry.mitigation.rule != *filter.rule) return;
    visit(entry.mitigation);
  });
}

void Mitigations::visit(const MetricVisitor& visitor) const {
  counts_.visit(visitor);
  for (std::size_t kind = 0; kind < kEntryKinds; ++kind) {
    const auto which = static_cast<EntryKind>(kind);
    const auto live = static_cast<double>(table_.count(which) - table_.ended_count(which));
    visitor({"popgate_mitigate_live", "entries", "Entries in force, by kind", live, false, "kind", kKindNames[kind]});
    visitor({"popgate_mitigate_ended_kept", "entries", "Ended entries kept until no copy can live, by kind",
             static_cast<double>(table_.ended_count(which)), false, "kind", kKindNames[kind]});
  }
  visitor(
      {"popgate_mitigate_may_originate", "", "1 when this node may decide", may_originate_ ? 1.0 : 0.0, false, "", ""});
  visitor({"popgate_mitigate_counter", "", "This node's counter of decisions, past every counter it has seen",
           static_cast<double>(counter_), true, "", ""});
}

Mitigation Mitigations::originate(const Key& key, EntryKind kind, PopInstant wall) {
  Mitigation entry;
  entry.space = kind == EntryKind::kAutomatic ? Space::kAutomatic : Space::kOperator;
  entry.key = key;
  entry.lifted = kind == EntryKind::kLift;
  entry.version = {epoch_of(key), ++counter_, node_, options_.incarnation};
  entry.decided_at = wall;
  entry.decided_by = options_.node_name;
  return entry;
}

std::uint64_t Mitigations::epoch_of(const Key& key) const {
  std::uint64_t epoch = 0;
  for (const EntryKind kind : {EntryKind::kAutomatic, EntryKind::kOperator, EntryKind::kLift}) {
    const Entry* entry = table_.find({key, kind});
    if (entry != nullptr) epoch = std::max(epoch, entry->mitigation.version.epoch);
  }
  return epoch;
}

std::size_t Mitigations::most(EntryKind kind) const {
  return kind == EntryKind::kAutomatic ? options_.entries_max : kOperatorEntriesMax;
}

bool Mitigations::make_room(EntryKind kind) {
  if (table_.count(kind) < most(kind)) return true;
  if (!table_.drop_ended(kind)) return false;
  ++counts_.ended_dropped_early;
  return true;
}

bool Mitigations::is_believable(const Mitigation& entry) {
  const Version& version = entry.version;
  if (version.node == node_ && version.incarnation == options_.incarnation && version.counter > counter_) {
    ++counts_.refused_foreign;
    return false;
  }
  // Written as a difference: the sum could wrap.
  const bool counter_ahead = version.counter > counter_ && version.counter - counter_ > kCounterLeapMax;
  if (counter_ahead || version.epoch > kEpochMax) {
    ++counts_.refused_ahead;
    return false;
  }
  return true;
}

MergeOutcome Mitigations::merge_into(Mitigation entry, const Origin& from, HostInstant now) {
  normalise(entry, now);
  const EntryId id{entry.key, kind_of(entry)};
  counter_ = std::max(counter_, entry.version.counter);
  const Entry* lift = table_.find({entry.key, EntryKind::kLift});
  if (lift != nullptr && !entry.lifted && entry.version.epoch < lift->mitigation.version.epoch) {
    ++counts_.beaten;
    return MergeOutcome::kUnchanged;
  }
  if (const Entry* held = table_.find(id)) return join(*held, entry, from, now);
  // It ended, and there is nothing here that it could end; but what this node itself saw end stays ended.
  if (entry.until + (from.kind == Origin::Kind::kRestored ? kEndedKept : seconds(0)) <= now) {
    ++counts_.unchanged;
    return MergeOutcome::kUnchanged;
  }
  if (!make_room(id.kind)) {
    ++counts_.refused_merge_full;
    return MergeOutcome::kRefused;
  }
  ++counts_.merged;
  store(std::move(entry), from, now);
  return MergeOutcome::kChanged;
}

MergeOutcome Mitigations::join(const Entry& held, const Mitigation& copy, const Origin& from, HostInstant now) {
  const bool replaces = precedence(copy, held.mitigation) > 0;
  const bool is_one_version = copy.version == held.mitigation.version;
  const bool shortens = is_one_version && copy.until + kEndSlack <= held.mitigation.until;
  if (!replaces && !shortens) {
    ++counts_.unchanged;
    return MergeOutcome::kUnchanged;
  }
  Mitigation joined = replaces ? copy : held.mitigation;
  if (is_one_version) joined.until = std::min(copy.until, held.mitigation.until);
  ++(replaces ? counts_.merged : counts_.shortened);
  store(std::move(joined), from, now);
  return MergeOutcome::kChanged;
}

void Mitigations::store(Mitigation entry, const Origin& from, HostInstant now) {
  const EntryId id{entry.key, kind_of(entry)};
  if (entry.lifted) remove_beaten(entry.key, entry.version.epoch);
  // It also outlives what it replaces: a copy of that, held by a node out of reach, must find it here.
  HostInstant keep_until = entry.until + kEndedKept;
  if (const Entry* held = table_.find(id)) keep_until = std::max(keep_until, held->keep_until);
  const bool ended = entry.until <= now;
  table_.put({std::move(entry), keep_until, ended});
  on_change_(table_.find(id)->mitigation, from);
}

void Mitigations::remove_beaten(const Key& key, std::uint64_t epoch) {
  for (const EntryKind kind : {EntryKind::kAutomatic, EntryKind::kOperator}) {
    const Entry* entry = table_.find({key, kind});
    if (entry != nullptr && entry->mitigation.version.epoch < epoch) table_.erase({key, kind});
  }
}

}  // namespace popgate
