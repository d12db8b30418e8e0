// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/wrong_stamps.h"

#include <algorithm>

namespace popgate::simulation {

void WrongStamps::hit(Node& node, const Rule& rule, const Key& key) {
  const PopInstant stamp = node.machine().wall_now();
  const bool right = !node.machine().is_off();
  truth_.hit(key, rule.window, stamp, {.hits = rule.cost, .rightly_stamped = right}, world_.now());
  if (right) return;
  made_ += rule.cost;
  const SlotIndex slot = KeySlots(rule.window, key).slot_at(stamp);
  states_[node.host()].not_excused.push_back({world_.now(), key, rule.window.slot, slot, rule.cost});
}

bool WrongStamps::can_tell(const Node& node) const {
  const auto heard = std::ranges::count_if(nodes_, [&](const auto& peer) {
    if (peer->host() == node.host() || !peer->is_running() || peer->machine().was_off_within(kHeardAgain)) return false;
    const auto since = conditions_.ways_clean_since(node.host(), peer->host());
    return since && (*since == ModelInstant{} || world_.now() - *since > kHeardAgain);
  });
  return 2 * static_cast<std::size_t>(heard) >= nodes_.size();
}

void WrongStamps::excuse(State& state, ModelInstant since) {
  for (const Hit& hit : state.not_excused) {
    if (hit.at < since) continue;
    excused_ += hit.hits;
    truth_.excuse(hit.key, hit.slot_length, hit.slot, hit.hits);
  }
  state.not_excused.clear();
}

void WrongStamps::turn(Node& node) {
  State& state = states_[node.host()];
  if (node.machine().is_off() && !can_tell(node)) {
    state.blind_at = world_.now();
    excuse(state, ModelInstant{});
  } else if (!node.machine().is_off()) {
    excuse(state, state.last_turn - kInRingMax);
  }
  state.last_turn = world_.now();
}

bool WrongStamps::was_blind_within(Node& node, microseconds duration) const {
  if (node.machine().is_off() && !can_tell(node)) return true;
  const auto state = states_.find(node.host());
  if (state == states_.end() || !state->second.blind_at) return false;
  return world_.now() - *state->second.blind_at < duration;
}

}  // namespace popgate::simulation
