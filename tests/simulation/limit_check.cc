// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/limit_check.h"

namespace popgate::simulation {

void LimitCheck::start() {
  pop_.world().after(kEvery, [this] {
    look();
    start();
  });
}

bool LimitCheck::is_quiet(microseconds for_so_long) const {
  const auto calm = pop_.conditions().calm_since();
  const ModelInstant now = pop_.world().now();
  return calm && now - *calm > for_so_long && now - forgotten_at_ > for_so_long &&
         now - pop_.rules_same_since() > for_so_long;
}

void LimitCheck::look() {
  for (const Traffic::Client& client : traffic_.clients()) {
    const Rule& rule = traffic_.rule_of(client);
    if (pop_.is_in_force(rule) && is_quiet(kQuietFor + rule.window.window)) look_at(client, rule);
  }
}

// Of two decisions made at once the one stands that may end earlier; whom it lets go is judged at its next hit.
bool LimitCheck::came_since_end(Node& node, const Key& key, const Mitigation* ended) const {
  if (ended == nullptr) return true;
  const ModelInstant now = pop_.world().now();
  return pop_.truth().hits_of(key).between(now - (node.machine().host_now() - ended->until), now) > 0;
}

// Over the limit in the slots that lie wholly inside the window for every clock: every policy acts on that.
void LimitCheck::look_at(const Traffic::Client& client, const Rule& rule) {
  const ModelInstant now = pop_.world().now();
  const microseconds inside = rule.window.window - rule.window.slot - 2 * rule.window.tolerance;
  if (pop_.truth().hits_of(traffic_.key_of(client)).between(now - inside, now) <= rule.limit) return;
  ++looked_at_;
  pop_.world().after(kEnforcedWithin, [this, client, asked = now] {
    const Rule& now_rule = traffic_.rule_of(client);
    const Key key = traffic_.key_of(client);
    if (!pop_.is_in_force(now_rule) || !is_quiet(kQuietFor + kEnforcedWithin)) return;
    for (const auto& node : pop_.nodes()) {
      if (!node->is_running() || node->was_full_within(kQuietFor)) return;
      const KeyEntries entries = node->pipeline().mitigations().find(key);
      if (entries.lift != nullptr) return;  // what was lifted does not count
      // It may have been mitigated and have ended since.
      const HostInstant asked_there = node->machine().host_now() - (pop_.world().now() - asked);
      const bool was = entries.automatic != nullptr && entries.automatic->until > asked_there;
      if (was || entries.by_operator != nullptr || !came_since_end(*node, key, entries.automatic)) continue;
      return pop_.broken("11", "key " + key_text(key) + " was over the limit of " + now_rule.name + " and " +
                                   node->name() + " has not mitigated it " +
                                   std::to_string(kEnforcedWithin.count() / 1000) + " ms later");
    }
  });
}

}  // namespace popgate::simulation
