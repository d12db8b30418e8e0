// SPDX-License-Identifier: Apache-2.0
#include "daemon/mitigate/own_share.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace popgate {
namespace {

std::vector<SlotCount> unsent_of(std::span<const SlotCount> slots) {
  std::vector<SlotCount> unsent;
  for (const SlotCount& count : slots) unsent.push_back({.slot = count.slot, .unsent = count.unsent});
  return unsent;
}

}  // namespace

OwnShare own_share(const KeyView& view, const Rule& rule, std::uint32_t members) {
  const std::vector<SlotCount> unsent = unsent_of(view.totals.slots);
  SlotTotals own_totals = view.totals;
  own_totals.slots = unsent;
  const double all = estimate_rate(view.totals, view.slots, view.now, view.ignored_through).estimate;
  OwnShare result;
  result.own = estimate_rate(own_totals, view.slots, view.now, view.ignored_through).estimate;
  const auto known = static_cast<std::uint64_t>(std::floor(std::max(all - result.own, 0.0)));
  const std::uint64_t room = rule.limit - std::min(rule.limit, known);
  result.share = std::max<std::uint64_t>((room + members - 1) / members, rule.cost);
  result.limit = std::min(rule.limit, known + result.share);

  const auto fall_to = [&](double level, const SlotTotals& totals) {
    return time_until_figure_is(RateFigure::kEstimate, level, totals, view.slots, view.now, view.ignored_through);
  };
  const double needed = static_cast<double>(rule.limit) - admitting_level(rule);
  const double own_level = std::max(static_cast<double>(result.share) - needed, 0.0);
  result.fall = std::max(fall_to(admitting_level(rule), view.totals), fall_to(own_level, own_totals));
  return result;
}

}  // namespace popgate
