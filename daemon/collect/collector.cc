// SPDX-License-Identifier: Apache-2.0
#include "daemon/collect/collector.h"

#include <algorithm>
#include <bit>

namespace popgate {
namespace {

constexpr std::size_t kIndexPlacesFirst = 1024;

// 64 × 64 -> 128 bits, folded: every bit of both decides. Good enough because workers do not know the seed.
std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

enum class Stamp : std::uint8_t { kFits, kPast, kAhead };

// Compared before anything is computed from the stamp: it comes from another process and may be any number.
Stamp judge_stamp(std::int64_t stamp_us, const WindowShape& shape, PopInstant now) {
  if (stamp_us > (now + shape.tolerance).time_since_epoch().count()) return Stamp::kAhead;
  const PopInstant oldest = now - shape.window - shape.tolerance - shape.slot;
  return stamp_us < oldest.time_since_epoch().count() ? Stamp::kPast : Stamp::kFits;
}

bool same_slots(const Rule* a, const Rule* b) {
  return a != nullptr && b != nullptr && a->counter_identity == b->counter_identity && a->window == b->window;
}

}  // namespace

Collector::Collector(Options options, Ledger& ledger)
    : options_(options), ledger_(ledger), index_(kIndexPlacesFirst, 0) {}

// A sum of a rule whose slots or keys have changed means nothing to those who come after.
void Collector::use_rules(SharedRules rules) {
  std::vector<const Rule*> by_number;
  for (const Rule& rule : rules->all()) {
    if (!rule.enabled) continue;
    if (rule.number >= by_number.size()) by_number.resize(rule.number + 1, nullptr);
    by_number[rule.number] = &rule;
  }
  std::erase_if(sums_, [&](const HitSum& sum) {
    if (same_slots(rule(sum.rule), sum.rule < by_number.size() ? by_number[sum.rule] : nullptr)) return false;
    drop(sum.rule, sum.hits, figures_.dropped_rule);
    return true;
  });
  by_number_ = std::move(by_number);
  rules_ = std::move(rules);
  reindex(index_.size());
}

void Collector::add(const Hit& hit, PopInstant now) {
  figures_.hits += hit.cost;
  const Rule* const its_rule = rule(hit.rule);
  if (its_rule == nullptr) return drop(hit.rule, hit.cost, figures_.dropped_rule);
  switch (judge_stamp(hit.stamp_us, its_rule->window, now)) {
    case Stamp::kAhead:
      return drop(hit.rule, hit.cost, figures_.dropped_ahead);
    case Stamp::kPast:
      return expire(hit.rule, hit.cost);
    case Stamp::kFits:
      break;
  }
  const KeySlots slots(its_rule->window, hit.key);
  const SlotIndex slot = slots.slot_at(PopInstant(microseconds(hit.stamp_us)));
  if (slot < slots.first_touching(now)) return expire(hit.rule, hit.cost);
  add_to_slot(hit, slot);
}

void Collector::add_to_slot(const Hit& hit, SlotIndex slot) {
  std::size_t place = place_of(hit.key, hit.rule, slot);
  if (index_[place] != 0) {
    sums_[index_[place] - 1].hits += hit.cost;
    return;
  }
  if (sums_.size() >= options_.sums_max) return drop(hit.rule, hit.cost, figures_.dropped_full);
  if ((sums_.size() + 1) * 2 > index_.size()) {
    reindex(index_.size() * 2);
    place = place_of(hit.key, hit.rule, slot);
  }
  sums_.push_back({hit.key, hit.rule, slot, hit.cost});
  index_[place] = static_cast<std::uint32_t>(sums_.size());
}

// Where the sum is, or where it would go.
std::size_t Collector::place_of(const Key& key, RuleNumber rule, SlotIndex slot) const {
  const std::size_t mask = index_.size() - 1;
  const std::uint64_t where = static_cast<std::uint64_t>(slot) << kRuleNumberBits ^ rule;
  std::size_t place = mix(key.lo ^ options_.seed, (key.hi + where) | 1) & mask;
  while (index_[place] != 0) {
    const HitSum& sum = sums_[index_[place] - 1];
    if (sum.key == key && sum.slot == slot && sum.rule == rule) break;
    place = (place + 1) & mask;
  }
  return place;
}

void Collector::reindex(std::size_t places) {
  index_.assign(places, 0);
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    index_[place_of(sums_[i].key, sums_[i].rule, sums_[i].slot)] = static_cast<std::uint32_t>(i + 1);
  }
}

void Collector::flush(PopInstant now, std::vector<HitSum>& out) {
  out.clear();
  out.swap(sums_);
  index_.assign(std::max(kIndexPlacesFirst, std::bit_ceil(out.size() * 2)), 0);  // as large as it was needed
  std::erase_if(out, [&](const HitSum& sum) {
    const KeySlots slots(rule(sum.rule)->window, sum.key);
    if (sum.slot >= slots.first_touching(now)) return false;
    expire(sum.rule, sum.hits);
    return true;
  });
  figures_.flushed_sums += out.size();
}

void Collector::drop(RuleNumber rule, std::uint64_t hits, std::uint64_t& figure) {
  figure += hits;
  ledger_.add(rule, LedgerColumn::kDropped, hits);
}

void Collector::expire(RuleNumber rule, std::uint64_t hits) {
  figures_.expired += hits;
  ledger_.add(rule, LedgerColumn::kExpired, hits);
}

void Collector::visit(const MetricVisitor& visitor) const {
  const auto counter = [&](std::string_view name, std::string_view unit, std::string_view meaning,
                           std::uint64_t value) {
    visitor({name, unit, meaning, static_cast<double>(value), true, {}, {}});
  };
  counter("popgate_collect_hits_added", "hits", "Hits that reached the collector.", figures_.hits);
  counter("popgate_collect_sums_flushed", "sums", "Sums of one key and slot handed on to count.",
          figures_.flushed_sums);
  counter("popgate_collect_hits_expired", "hits", "Hits whose slot left the window before they were handed on.",
          figures_.expired);
  counter("popgate_collect_hits_dropped_full", "hits",
          "Hits of keys for which there was no room before the next flush.", figures_.dropped_full);
  counter("popgate_collect_hits_dropped_ahead", "hits", "Hits stamped later than the clock: it was set back.",
          figures_.dropped_ahead);
  counter("popgate_collect_hits_dropped_rule", "hits", "Hits of rules that are gone or whose keys have changed.",
          figures_.dropped_rule);
  visitor({"popgate_collect_sums",
           "sums",
           "Sums that wait for the next flush.",
           static_cast<double>(sums_.size()),
           false,
           {},
           {}});
}

}  // namespace popgate
