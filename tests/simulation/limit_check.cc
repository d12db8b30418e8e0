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
  return calm && now - *calm > for_so_long && now - forgotten_at_ > for_so_long;
}

void LimitCheck::look() {
  for (const Traffic::Client& client : traffic_.clients()) {
    const Rule& rule = traffic_.rule_of(client);
    if (rule.enabled && is_quiet(kQuietFor + rule.window.window)) look_at(client, rule);
  }
}

// Over the limit in the slots that lie wholly inside the window for every clock: every policy acts on that.
void LimitCheck::look_at(const Traffic::Client& client, const Rule& rule) {
  const ModelInstant now = pop_.world().now();
  const microseconds inside = rule.window.window - rule.window.slot - 2 * rule.window.tolerance;
  if (pop_.truth().hits_of(client.key).between(now - inside, now) <= rule.limit) return;
  ++looked_at_;
  pop_.world().after(kEnforcedWithin, [this, client, asked = now] {
    const Rule& now_rule = traffic_.rule_of(client);
    if (!now_rule.enabled || !is_quiet(kQuietFor + kEnforcedWithin)) return;
    for (const auto& node : pop_.nodes()) {
      if (!node->is_running()) return;
      const KeyEntries entries = node->pipeline().mitigations().find(client.key);
      if (entries.lift != nullptr) return;  // what was lifted does not count
      // It may have been mitigated and have ended since.
      const HostInstant asked_there = node->machine().host_now() - (pop_.world().now() - asked);
      const bool was = entries.automatic != nullptr && entries.automatic->until > asked_there;
      if (was || entries.by_operator != nullptr) continue;
      return pop_.broken("11", "key " + key_text(client.key) + " was over the limit of " + now_rule.name + " and " +
                                   node->name() + " has not mitigated it " +
                                   std::to_string(kEnforcedWithin.count() / 1000) + " ms later");
    }
  });
}

}  // namespace popgate::simulation
