// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/bounds_check.h"

namespace popgate::simulation {
namespace {

// Of the table's entries, for operators' blocks alone.
constexpr std::size_t kOperatorsMore = 4;

}  // namespace

void BoundsCheck::hold(Node& node, std::string_view what, std::size_t held, std::size_t bound) {
  if (held >= bound && !reached_.contains(what)) reached_.emplace(what);
  if (held <= bound) return;
  pop_.broken("9", node.name() + " holds " + std::to_string(held) + " " + std::string(what) + ", of at most " +
                       std::to_string(bound));
}

void BoundsCheck::turn(Node& node) {
  Pipeline& path = node.pipeline();
  const Config& config = node.config();
  hold(node, "sums", path.collector().sums(), Collector::Options{}.sums_max);
  path.store().visit([&](const Metric& metric) {
    if (metric.name == "popgate_count_keys_held")
      hold(node, "keys", static_cast<std::size_t>(metric.value), config.keys_max);
  });
  const std::size_t entries = path.publisher().capacity();
  hold(node, "entries of the table", path.publisher().live_entries(), entries + entries / kOperatorsMore);
  hold(node, "keys that wait for the table", path.publisher().not_enforced(), kWaitingMax);
  for (const BrakeSide side : {BrakeSide::kNode, BrakeSide::kPop}) {
    hold(node, "orders", path.brakes().brakes().registers(side).size(), kBrakesMax + 1);  // and the one for everything
  }
  hold(node, "automatic entries in force", path.mitigations().live_count(EntryKind::kAutomatic), config.table_entries);
  // What waits is looked at before a frame is added.
  const OutputHighWater to_peers = node.to_peers();
  hold(node, "bytes for a peer", to_peers.bytes, node.mesh_output_bytes_max() + to_peers.write_bytes);
  node.look_whether_full();
  if (++turns_[node.host()] % kTurnsBetweenFigures == 0) look_at_figures(node);
}

void BoundsCheck::look_at_figures(Node& node) {
  std::map<std::string_view, std::size_t> kept;  // automatic, operator, lift: live and ended ones
  std::size_t records = 0;
  node.pipeline().visit([&](const Metric& metric) {
    // Only of those asked for: a skew, say, can be below 0.
    const auto count = [&] { return static_cast<std::size_t>(metric.value); };
    if (metric.name == "popgate_mitigate_live" || metric.name == "popgate_mitigate_ended_kept") {
      kept[metric.label_value] += count();
    }
    if (metric.name == "popgate_publish_unrecorded") hold(node, "unrecorded entries", count(), kUnrecordedMax);
    if (metric.name == "popgate_publish_records") records = count();
    if (metric.name == "popgate_publish_records_max") hold(node, "records", records, count());  // told after it
  });
  POPGATE_ASSERT(kept.size() == kEntryKinds);
  for (const auto& [kind, entries] : kept) {
    hold(node, kind, entries, kind == "automatic" ? node.config().table_entries : kOperatorEntriesMax);
  }
}

}  // namespace popgate::simulation
