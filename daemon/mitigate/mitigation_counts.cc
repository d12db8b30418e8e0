// SPDX-License-Identifier: Apache-2.0
#include "daemon/mitigate/mitigation_counts.h"

namespace popgate {
namespace {

struct Row {
  std::uint64_t MitigationCounts::*figure;
  std::string_view name;
  std::string_view meaning;
};

constexpr Row kRows[] = {
    {&MitigationCounts::decided, "popgate_mitigate_decided", "New automatic mitigations that this node decided"},
    {&MitigationCounts::renewed, "popgate_mitigate_renewed", "Live automatic mitigations that this node lengthened"},
    {&MitigationCounts::withheld_open, "popgate_mitigate_withheld_open",
     "Decisions not made, because the shard could not be counted on and the rule is open then"},
    {&MitigationCounts::already_live, "popgate_mitigate_already_live",
     "Decisions not made, because one as long was in force"},
    {&MitigationCounts::blocked, "popgate_mitigate_blocked", "Blocks by an operator of this node"},
    {&MitigationCounts::lifted, "popgate_mitigate_lifted", "Lifts by an operator of this node"},
    {&MitigationCounts::refused_full, "popgate_mitigate_refused_full",
     "Decisions refused because every place for entries held a live one"},
    {&MitigationCounts::refused_unready, "popgate_mitigate_refused_unready",
     "Decisions refused because this node had not learnt its own counter yet"},
    {&MitigationCounts::merged, "popgate_mitigate_merged", "Peers' entries that changed this node's set"},
    {&MitigationCounts::shortened, "popgate_mitigate_shortened", "Known entries whose end a peer's copy made earlier"},
    {&MitigationCounts::unchanged, "popgate_mitigate_unchanged", "Peers' entries that were known or older"},
    {&MitigationCounts::beaten, "popgate_mitigate_beaten", "Peers' decisions made without knowing of a lift"},
    {&MitigationCounts::refused_ahead, "popgate_mitigate_refused_ahead",
     "Peers' entries refused because a counter or epoch was absurdly far ahead"},
    {&MitigationCounts::refused_foreign, "popgate_mitigate_refused_foreign",
     "Peers' entries refused because they claimed to be decisions of this daemon that it never made"},
    {&MitigationCounts::refused_merge_full, "popgate_mitigate_refused_merge_full",
     "Peers' entries refused because every place for entries held a live one"},
    {&MitigationCounts::ended, "popgate_mitigate_ended", "Mitigations that reached their end"},
    {&MitigationCounts::ended_dropped_early, "popgate_mitigate_ended_dropped_early",
     "Ended entries forgotten before their time to make room for new ones"},
    {&MitigationCounts::rejudged, "popgate_mitigate_rejudged", "Entries whose effect changed with the rules"},
};

}  // namespace

void MitigationCounts::visit(const MetricVisitor& visitor) const {
  for (const Row& row : kRows) {
    Metric metric;
    metric.name = row.name;
    metric.unit = "entries";
    metric.meaning = row.meaning;
    metric.value = static_cast<double>(this->*row.figure);
    visitor(metric);
  }
  for (std::size_t mode = 0; mode < kDecidedUnders; ++mode) {
    visitor({"popgate_mitigate_decided_under", "entries",
             "Decisions and renewals of this node, by what they went by: the counters, or a rule's on_counter_failure",
             static_cast<double>(decided_under[mode]), true, "mode",
             decided_under_name(static_cast<DecidedUnder>(mode))});
  }
}

}  // namespace popgate
