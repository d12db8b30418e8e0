// SPDX-License-Identifier: Apache-2.0
#include "daemon/publish/table_writer.h"

#include <algorithm>
#include <bit>

namespace popgate {

std::uint32_t bucket_count_for(std::size_t entries) {
  const std::size_t bounded = std::min(entries, kTableEntriesMax);
  const std::size_t buckets = (bounded * 2 + kEntriesPerBucket - 1) / kEntriesPerBucket;
  return std::max(kTableBucketsMin, static_cast<std::uint32_t>(std::bit_ceil(buckets)));
}

Result<std::unique_ptr<TableWriter>> TableWriter::open(const std::string& path, std::size_t entries_max,
                                                       std::uint64_t incarnation, std::vector<std::string>& notes) {
  if (entries_max == 0 || entries_max > kTableEntriesMax) {
    return Error{path + ": table_entries: found " + std::to_string(entries_max) + ", allowed: 1 to " +
                 std::to_string(kTableEntriesMax)};
  }
  const std::uint32_t bucket_count = bucket_count_for(entries_max);
  auto file = TableFile::open(path, bucket_count, incarnation, notes);
  if (!file) return Error{file.error()};
  return std::unique_ptr<TableWriter>(new TableWriter(*std::move(file), bucket_count, entries_max));
}

TableWriter::TableWriter(std::unique_ptr<TableFile> file, std::uint32_t bucket_count, std::size_t entries_max)
    : file_(std::move(file)), editor_(*file_, bucket_count, entries_max), entries_max_(entries_max) {}

void TableWriter::reconcile(std::span<const Enforcement> wanted, HostInstant now) {
  const Adoption adoption = editor_.adopt(wanted, now);
  counts_.adopted += adoption.kept;
  counts_.inserted += adoption.inserted;
  counts_.adoption_deleted += adoption.deleted;
  for (const Enforcement& one : adoption.refused) wait_for_room(one);
  heartbeat(now);  // not before: an old table whose heartbeat is stale must not come to life with its old entries
}

bool TableWriter::put(const Enforcement& wanted, HostInstant now) {
  waiting_.erase(wanted.key);
  switch (editor_.put(wanted, now)) {
    case PutOutcome::kInserted:
      ++counts_.inserted;
      return true;
    case PutOutcome::kChanged:
      ++counts_.changed;
      return true;
    case PutOutcome::kUnchanged:
    case PutOutcome::kEnded:
      return true;
    case PutOutcome::kRefused:
      break;
  }
  wait_for_room(wanted);
  return false;
}

void TableWriter::remove(const Key& key) {
  waiting_.erase(key);
  if (editor_.remove(key)) ++counts_.removed;
}

bool TableWriter::sweep(HostInstant now) {
  const std::size_t deleted = editor_.sweep(kSweepSlotsPerCall, now);
  counts_.ended += deleted;
  retry_waiting(now);
  return deleted > 0;
}

void TableWriter::wait_for_room(const Enforcement& wanted) {
  ++counts_.refused;
  if (waiting_.size() < kWaitingMax) waiting_[wanted.key] = wanted;
}

// Round and round, so that none starves.
void TableWriter::retry_waiting(HostInstant now) {
  for (std::size_t i = std::min(kRetriesPerCall, waiting_.size()); i > 0; --i) {
    auto it = waiting_.upper_bound(retry_after_);
    if (it == waiting_.end()) it = waiting_.begin();
    retry_after_ = it->first;
    const PutOutcome outcome = editor_.put(it->second, now);
    if (outcome == PutOutcome::kRefused) continue;
    if (outcome == PutOutcome::kInserted) ++counts_.inserted;
    waiting_.erase(it);
  }
}

void TableWriter::visit(const MetricVisitor& visitor) const {
  const auto count = [](std::uint64_t value) { return static_cast<double>(value); };
  const Metric metrics[] = {
      {"popgate_publish_entries", "entries", "Mitigations in the table now.", count(entries()), false, "", ""},
      {"popgate_publish_entries_max", "entries", "How many the table takes.", count(entries_max_), false, "", ""},
      {"popgate_publish_entries_waiting", "entries", "Mitigations that found no room and are tried again.",
       count(waiting_.size()), false, "", ""},
      {"popgate_publish_inserted_total", "entries", "Mitigations put into the table.", count(counts_.inserted), true,
       "", ""},
      {"popgate_publish_changed_total", "entries", "Entries whose end or rule was changed.", count(counts_.changed),
       true, "", ""},
      {"popgate_publish_removed_total", "entries", "Entries taken out before their end.", count(counts_.removed), true,
       "", ""},
      {"popgate_publish_ended_total", "entries", "Entries swept after their end.", count(counts_.ended), true, "", ""},
      {"popgate_publish_refused_total", "entries", "Mitigations that found no room.", count(counts_.refused), true, "",
       ""},
      {"popgate_publish_adopted_total", "entries", "Entries taken over from the daemon before.", count(counts_.adopted),
       true, "", ""},
      {"popgate_publish_adoption_deleted_total", "entries",
       "Entries of the daemon before that nothing recorded explained.", count(counts_.adoption_deleted), true, "", ""},
  };
  for (const Metric& metric : metrics) visitor(metric);
}

}  // namespace popgate
