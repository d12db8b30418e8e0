// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/shard_figures.h"

namespace popgate {
namespace {

struct Count {
  std::string_view name;
  std::string_view unit;
  std::string_view meaning;
  std::uint64_t ShardFigures::*value;
};

// clang-format off
constexpr Count kCounts[] = {
    {"popgate_count_shard_batches_sent", "batches", "Batches sent to the shard.", &ShardFigures::batches},
    {"popgate_count_shard_hits_delivered", "hits", "Hits that the shard confirmed.", &ShardFigures::delivered},
    {"popgate_count_shard_hits_uncertain", "hits", "Hits sent without a reply that tells whether they were counted.", &ShardFigures::uncertain},
    {"popgate_count_shard_hits_refused", "hits", "Hits that the shard refused as the client's fault.", &ShardFigures::refused},
    {"popgate_count_shard_timeouts", "timeouts", "Connections given up because a reply was late.", &ShardFigures::timeouts},
    {"popgate_count_shard_disconnects", "connections", "Connections, or attempts at one, that ended for whatever reason.", &ShardFigures::disconnects},
    {"popgate_count_shard_losses", "losses", "Times that the shard was seen to have lost counters.", &ShardFigures::losses},
    {"popgate_count_shard_generation_changes", "losses", "Losses that a missing or another generation key showed: the shard restarted or was flushed.", &ShardFigures::generation_changes},
    {"popgate_count_shard_totals_fallen", "losses", "Losses that a total below one read before showed, or a counter that was there and is not.", &ShardFigures::totals_fallen},
    {"popgate_count_shard_misplacements", "checks", "Ring checks that found probes of the shard elsewhere or nowhere.", &ShardFigures::misplacements},
    {"popgate_count_shard_refused_for_memory", "increments", "Increments that the shard had no memory for; their hits wait.", &ShardFigures::refused_for_memory},
    {"popgate_count_shard_degraded_entered", "times", "Times that the shard could no longer be counted on.", &ShardFigures::degraded_entered},
    {"popgate_count_shard_degraded_left", "times", "Times that the shard could be counted on again.", &ShardFigures::degraded_left},
    {"popgate_count_shard_evictions", "items", "Items that the shard's memcached evicted while it was watched.", &ShardFigures::evictions},
};
// clang-format on

}  // namespace

void visit_read_figures(const ShardFigures& figures, std::string_view shard_name, const MetricVisitor& visitor) {
  visitor({"popgate_count_also_read_reachable", "", "1 while the shard of the ring that is also read answers.",
           figures.reachable ? 1.0 : 0.0, false, "shard", shard_name});
  visitor({"popgate_count_also_read_losses", "losses",
           "Times that the shard of the ring that is also read was seen to have lost counters.",
           static_cast<double>(figures.losses), true, "shard", shard_name});
}

void visit_figures(const ShardFigures& figures, std::string_view shard_name, const MetricVisitor& visitor) {
  visitor({"popgate_count_shard_reachable", "", "1 while the shard answers.", figures.reachable ? 1.0 : 0.0, false,
           "shard", shard_name});
  visitor({"popgate_count_shard_degraded", "",
           "1 while the shard cannot be counted on and rules do what on_counter_failure says.",
           figures.degraded ? 1.0 : 0.0, false, "shard", shard_name});
  visitor({"popgate_count_shard_watched", "", "1 while the shard's statistics can be read, so that evictions are seen.",
           figures.watched ? 1.0 : 0.0, false, "shard", shard_name});
  visitor({"popgate_count_shard_round_trip", "seconds", "From making the last complete batch to its last reply.",
           static_cast<double>(figures.round_trip.count()) / 1e6, false, "shard", shard_name});
  for (const Count& count : kCounts) {
    visitor(
        {count.name, count.unit, count.meaning, static_cast<double>(figures.*count.value), true, "shard", shard_name});
  }
}

}  // namespace popgate
