// SPDX-License-Identifier: Apache-2.0
#include "tests/daemon/mitigate/pop_model.h"

#include <algorithm>
#include <utility>

#include "daemon/mitigate/precedence.h"
#include "tests/daemon/mitigate/samples.h"

namespace popgate {
namespace {

constexpr std::size_t kUnderWayMax = 400;

std::string text_of(const Version& v) {
  return "(" + std::to_string(v.epoch) + ", " + std::to_string(v.counter) + ", " + std::to_string(v.node % 1000) +
         ", " + std::to_string(v.incarnation) + ")";
}

}  // namespace

PopModel::PopModel(std::size_t nodes) : nodes_(nodes), rule_(sample_rule()), now_(kHostNow) {
  for (std::size_t node = 0; node < nodes; ++node) {
    start(node, true);
    nodes_[node].set->allow_originating(0);
  }
}

void PopModel::start(std::size_t node, bool with_record) {
  Node& me = nodes_[node];
  me.set = std::make_unique<Mitigations>(
      Mitigations::Options{"node" + std::to_string(node), ++incarnations_, 100},
      [this, node](const Mitigation& entry, const Origin& origin) { on_change(node, entry, origin); });
  me.set->use_rules(sample_rules({rule_}), now_);
  me.earliest_end.clear();  // the record file has one version of an entry, not those that it replaced
  if (!with_record) {
    me.record.clear();
    me.heard.clear();
    return;
  }
  for (const auto& [id, entry] : me.record) me.earliest_end[entry.version] = entry.until;
  const auto record = me.record;
  for (const auto& [id, entry] : record) me.set->restore(entry, now_);
  me.set->allow_originating(0);
}

// Clocks of the nodes differ by seconds, so that lifts made at the same time carry watermarks in any order.
PopInstant PopModel::wall_of(std::size_t node) const {
  return kWallNow + (now_ - kHostNow) + seconds(static_cast<int>(node * 7 % 5) - 2);
}

void PopModel::on_change(std::size_t node, const Mitigation& entry, const Origin& origin) {
  if (origin.kind == Origin::Kind::kLocal) note_lifts_known(node, entry);
  note_end(node, entry);
  nodes_[node].record[{entry.key, kind_of(entry)}] = entry;
  const bool passed_on =
      origin.kind == Origin::Kind::kLocal || (origin.kind == Origin::Kind::kPeer && !origin.in_snapshot);
  if (!passed_on) return;
  for (std::size_t to = 0; to < nodes_.size(); ++to) {
    const bool has_it = to == node || node_id("node" + std::to_string(to)) == origin.peer;
    if (!has_it && under_way_.size() < kUnderWayMax) under_way_.push_back({to, node, entry, false});
  }
}

void PopModel::note_lifts_known(std::size_t node, const Mitigation& entry) {
  LiftNames& heard = nodes_[node].heard[entry.key];
  if (entry.lifted) heard.insert(entry.version);
  lifts_known_to_[entry.version] = heard;
}

void PopModel::note_end(std::size_t node, const Mitigation& entry) {
  const auto [known, is_new] = nodes_[node].earliest_end.emplace(entry.version, entry.until);
  const bool crept = !is_new && entry.until > known->second && entry.until > now_;
  if (crept) crept_end_ = "the end of " + text_of(entry.version) + " moved later";
  known->second = std::min(known->second, entry.until);
}

void PopModel::decide(std::size_t node, const Key& key, std::uint16_t amount) {
  const HostInstant until = now_ + seconds(1 + amount % 240);
  (void)nodes_[node].set->decide({key, rule_, sample_evidence(150), {until, until}}, now_, wall_of(node));
}

void PopModel::deliver(const Message& message, microseconds jitter) {
  Mitigation entry = message.entry;
  entry.until += jitter;
  if (entry.lifted) {
    const LiftNames& carried = lifts_known_to_.at(entry.version);
    nodes_[message.to].heard[entry.key].insert(carried.begin(), carried.end());
  }
  const NodeId from = node_id("node" + std::to_string(message.from));
  (void)nodes_[message.to].set->merge(entry, {Origin::Kind::kPeer, from, message.in_snapshot}, now_);
}

bool PopModel::snapshot(std::size_t from, std::size_t to) {
  const Digest before = nodes_[to].set->digest();
  std::vector<Mitigation> entries;
  for (const EntryId& id : nodes_[from].set->ids(kAllBuckets)) entries.push_back(*nodes_[from].set->find_entry(id));
  for (const Mitigation& entry : entries) deliver({to, from, entry, true}, microseconds(0));
  nodes_[to].set->allow_originating(0);
  return nodes_[to].set->digest() != before;
}

void PopModel::advance(microseconds by) {
  now_ += by;
  for (Node& node : nodes_) node.set->expire(now_);
}

void PopModel::run(const Step& step) {
  const std::size_t node = step.node % nodes_.size();
  const std::size_t other = (node + 1 + step.key % (nodes_.size() - 1)) % nodes_.size();
  const Key key = key_of(step.key);
  const std::size_t which = under_way_.empty() ? 0 : step.amount % under_way_.size();
  const auto take = [&] {
    std::swap(under_way_[which], under_way_.back());
    const Message message = under_way_.back();
    under_way_.pop_back();
    return message;
  };
  switch (step.kind % 20) {
    case 0:
    case 1:
    case 2:
      return decide(node, key, step.amount);
    case 3:
      return (void)nodes_[node].set->lift({key, wall_of(node), ""}, now_, wall_of(node));
    case 4:
      return (void)nodes_[node].set->block({key, 0, seconds(1 + step.amount % 100), ""}, now_, wall_of(node));
    case 5:  // lost
      if (!under_way_.empty()) (void)take();
      return;
    case 6:  // repeated
      if (!under_way_.empty()) deliver(Message(under_way_[which]), milliseconds(step.key));
      return;
    case 7:
      return advance(seconds(step.amount % 90));
    case 8:
      return start(node, true);
    case 9:
      start(node, false);
      return (void)snapshot(other, node);
    case 10:
      return (void)snapshot(node, other);
    default:  // delivered, in any order
      if (!under_way_.empty()) deliver(take(), milliseconds(step.key));
  }
}

void PopModel::heal() {
  under_way_.clear();
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t from = 0; from < nodes_.size(); ++from) {
      for (std::size_t to = 0; to < nodes_.size(); ++to) {
        if (from != to) changed = snapshot(from, to) || changed;
      }
    }
  }
  // Ends agree to within the slack; step over those that are passing just now.
  advance(kEndSlack * 2);
  for (bool settled = false; !settled;) {
    settled = true;
    for (const Node& node : nodes_) {
      node.set->for_each({}, [&](const Mitigation& m) { settled = settled && m.until > now_ + 2 * kEndSlack; });
    }
    if (!settled) advance(kEndSlack * 2);
  }
}

std::string PopModel::difference_between_nodes() const {
  const auto live = [](const Node& node) {
    std::map<EntryId, Mitigation> entries;
    node.set->for_each({}, [&](const Mitigation& m) { entries[{m.key, kind_of(m)}] = m; });
    return entries;
  };
  const auto first = live(nodes_[0]);
  for (std::size_t i = 1; i < nodes_.size(); ++i) {
    const auto mine = live(nodes_[i]);
    if (mine.size() != first.size()) return "nodes 0 and " + std::to_string(i) + " hold another number of entries";
    for (const auto& [id, entry] : mine) {
      const auto found = first.find(id);
      if (found == first.end() || precedence(found->second, entry) != 0) return "differs: " + text_of(entry.version);
      if (std::chrono::abs(found->second.until - entry.until) > kEndSlack)
        return "end differs: " + text_of(entry.version);
    }
    if (nodes_[i].set->digest() != nodes_[0].set->digest()) return "equal sets with unequal digests";
  }
  return {};
}

std::string PopModel::undone_lift() const {
  std::string found;
  for (const Node& node : nodes_) {
    node.set->for_each({}, [&](const Mitigation& decision) {
      if (decision.lifted) return;
      const auto heard = node.heard.find(decision.key);
      const LiftNames& known = lifts_known_to_.at(decision.version);
      if (heard == node.heard.end()) return;
      for (const Version& name : heard->second) {
        const bool forgave_what_it_counted = decision.version.epoch < name.epoch;
        if (!known.contains(name) && forgave_what_it_counted)
          found = text_of(decision.version) + " undid " + text_of(name);
      }
    });
  }
  return found;
}

}  // namespace popgate
