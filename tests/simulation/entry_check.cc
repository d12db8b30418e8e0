// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/entry_check.h"

#include <algorithm>

#include "daemon/mitigate/precedence.h"

namespace popgate::simulation {
namespace {

std::string text_of(const Version& v) {
  return "(" + std::to_string(v.epoch) + ", " + std::to_string(v.counter) + ", " + std::to_string(v.node % 1000) +
         ", " + std::to_string(v.incarnation) + ")";
}

std::string text_of(const Mitigation& entry) {
  const std::string kind = entry.lifted ? "lift" : entry.space == Space::kOperator ? "block" : "decision";
  return kind + " " + text_of(entry.version) + " of key " + key_text(entry.key);
}

}  // namespace

void EntryCheck::started(Node& node, bool with_records) {
  Told& told = told_[node.host()];
  told.looked = false;
  told.ends.clear();  // a record file has one version of an entry, not those that it replaced
  if (!with_records) {
    told.lifts.clear();
    told.by_epoch.clear();
  }
}

void EntryCheck::turn(Node& node) {
  Told& told = told_[node.host()];
  Mitigations& set = node.pipeline().mitigations();
  if (told.looked && told.digest == set.digest()) return;
  told.looked = true;
  told.digest = set.digest();
  set.for_each({.kind = {}, .rule = {}, .ended = true}, [&](const Mitigation& entry) {
    if (entry.lifted) look_at_lift(told, entry);
  });
  set.for_each({.kind = {}, .rule = {}, .ended = true}, [&](const Mitigation& entry) { look_at(node, told, entry); });
  look_for_undone(node, told);
}

// Nearly always of the node being looked at: only what was decided and replaced in one turn is first seen elsewhere.
EntryCheck::Told& EntryCheck::told_of_decider(const Mitigation& entry) {
  for (const auto& node : pop_.nodes()) {
    if (node_id(node->name()) == entry.version.node) return told_[node->host()];
  }
  POPGATE_ASSERT(false);
}

void EntryCheck::look_at_lift(Told& told, const Mitigation& entry) {
  Lifts& heard = told.lifts[entry.key];
  heard.insert(entry.version);
  if (const auto origin = origins_.find(entry.version); origin != origins_.end()) {
    heard.insert(origin->second.known.begin(), origin->second.known.end());
  }
}

void EntryCheck::look_at(Node& node, Told& told, const Mitigation& entry) {
  const auto [origin, is_new] = origins_.try_emplace(entry.version);
  if (is_new) {
    Told& decider = told_of_decider(entry);
    origin->second.known = decider.lifts[entry.key];
    origin->second.known.insert(decider.by_epoch[entry.key].begin(), decider.by_epoch[entry.key].end());
    origin->second.end = node.machine().true_time_at(entry.until);
    entry.lifted ? ++lifts_ : ++decisions_;
    pop_.world().note(node.name() + " " + text_of(entry) + " until " +
                      std::to_string(origin->second.end.time_since_epoch().count()));
    expect_spread(node, entry);
  }
  // Who holds a decision knows by its epoch what its decider had heard of, also before the lift itself comes.
  if (!entry.lifted) told.by_epoch[entry.key].insert(origin->second.known.begin(), origin->second.known.end());
  look_at_end(node, told, entry);
  const microseconds later = node.machine().true_time_at(entry.until) - origin->second.end;
  if (entry.lifted || entry.until <= node.machine().host_now()) return;
  latest_copy_ = std::max(latest_copy_, later);
  if (later <= kCopyLater) return;
  pop_.broken("6", node.name() + " holds " + text_of(entry) + " for " + std::to_string(later.count() / 1000) +
                       " ms longer than its decider");
}

void EntryCheck::look_at_end(Node& node, Told& told, const Mitigation& entry) {
  const auto [known, is_new] = told.ends.emplace(entry.version, entry.until);
  const bool crept = !is_new && entry.until > known->second && entry.until > node.machine().host_now();
  known->second = std::min(known->second, entry.until);
  if (crept) pop_.broken("6", "on " + node.name() + " the end of " + text_of(entry) + " moved later");
}

// A decision counted nothing that a lift forgave when its decider knew that lift, or one with a later watermark.
void EntryCheck::look_for_undone(Node& node, const Told& told) {
  const HostInstant now = node.machine().host_now();
  node.pipeline().mitigations().for_each({}, [&](const Mitigation& entry) {
    const auto heard = told.lifts.find(entry.key);
    if (entry.lifted || entry.until <= now || heard == told.lifts.end()) return;
    const Lifts& known = origins_.at(entry.version).known;
    for (const Version& lift : heard->second) {
      if (known.contains(lift)) continue;
      const bool knew_a_later_one =
          std::any_of(known.begin(), known.end(), [&](const Version& other) { return other.epoch >= lift.epoch; });
      if (knew_a_later_one) continue;
      pop_.broken("6", "on " + node.name() + " a " + text_of(entry) + " undid the lift " + text_of(lift));
    }
  });
}

// ---- News ----

std::set<HostNumber> EntryCheck::reached_from(HostNumber from) const {
  const ModelInstant now = pop_.world().now();
  const auto is_clean = [&](HostNumber a, HostNumber b) {
    const auto since = pop_.conditions().clean_since(a, b);
    return since && now - *since >= kCleanFor;
  };
  std::set<HostNumber> reached{from};
  for (int stretch = 0; stretch < 2; ++stretch) {
    for (const HostNumber via : std::set<HostNumber>(reached)) {
      for (const auto& node : pop_.nodes()) {
        if (node->is_running() && is_clean(via, node->host())) reached.insert(node->host());
      }
    }
  }
  reached.erase(from);
  return reached;
}

bool EntryCheck::has(Node& node, const Mitigation& entry) {
  const KeyEntries held = node.pipeline().mitigations().find(entry.key);
  if (held.lift != nullptr && (held.lift->version == entry.version || held.lift->version.epoch > entry.version.epoch)) {
    return true;
  }
  const Mitigation* const same = entry.lifted                      ? held.lift
                                 : entry.space == Space::kOperator ? held.by_operator
                                                                   : held.automatic;
  return same != nullptr && same->version >= entry.version;
}

bool EntryCheck::is_excused(const Node& node, const Mitigation& entry) {
  return kind_of(entry) == EntryKind::kAutomatic && node.was_full_within(kRefusedFor);
}

void EntryCheck::expect_spread(Node& from, const Mitigation& entry) {
  const std::set<HostNumber> reached = reached_from(from.host());
  if (reached.empty()) return;
  pop_.world().after(kSpreadWithin, [this, reached, entry, origin = from.host()] {
    const std::set<HostNumber> still = reached_from(origin);
    for (const HostNumber host : reached) {
      Node& node = *pop_.node_at(host);
      if (!still.contains(host) || !node.is_running() || has(node, entry)) continue;
      if (pop_.node_at(origin)->machine().true_time_at(entry.until) <= pop_.world().now()) continue;
      if (is_excused(node, entry)) continue;
      pop_.broken("6", node.name() + " has not heard of " + text_of(entry) + " after " +
                           std::to_string(kSpreadWithin.count() / 1000) + " ms");
    }
  });
}

// ---- The end ----

std::string EntryCheck::difference() const {
  std::map<EntryId, Mitigation> first;
  Node& reference = *pop_.nodes()[0];
  for (const auto& node : pop_.nodes()) {
    if (!node->is_running()) return node->name() + " does not run";
    std::map<EntryId, Mitigation> mine;
    const HostInstant soon = node->machine().host_now() + kCopyLater;
    node->pipeline().mitigations().for_each({}, [&](const Mitigation& entry) {
      mine[{entry.key, kind_of(entry)}] = entry;
    });
    if (node.get() == &reference) first = mine;
    for (const auto& [id, entry] : mine) {
      const auto other = first.find(id);
      if (other != first.end() && precedence(other->second, entry) == 0) continue;
      if (entry.until > soon && !is_excused(reference, entry))
        return node->name() + " holds " + text_of(entry) + ", " + reference.name() + " does not";
    }
    const HostInstant soon_there = reference.machine().host_now() + kCopyLater;
    for (const auto& [id, entry] : first) {
      if (!mine.contains(id) && entry.until > soon_there && !is_excused(*node, entry))
        return reference.name() + " holds " + text_of(entry) + ", " + node->name() + " does not";
    }
    for (const auto& [id, entry] : first) {
      const TableAnswer here = node->look_up(id.key);
      const TableAnswer there = reference.look_up(id.key);
      const bool ends_soon = std::max(here.remaining, there.remaining) < kCopyLater;
      if (here.live != there.live && !ends_soon && !is_excused(*node, entry) && !is_excused(reference, entry))
        return node->name() + " and " + reference.name() + " enforce otherwise for key " + key_text(id.key);
    }
  }
  return {};
}

}  // namespace popgate::simulation
