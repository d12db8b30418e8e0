// SPDX-License-Identifier: Apache-2.0
#include "daemon/publish/publisher.h"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace popgate {

Result<std::unique_ptr<Publisher>> Publisher::open(const PublisherOptions& options, std::vector<std::string>& notes) {
  auto table =
      TableWriter::open(options.run_dir + "/mitigations.table", options.table_entries, options.incarnation, notes);
  if (!table) return Error{table.error()};
  std::unique_ptr<RecordFile> records;
  if (options.state_dir.empty()) {
    notes.emplace_back("no state_dir: mitigations are not recorded and end when the daemon restarts");
  } else {
    // What the set of mitigations may hold, and as much again for what it drops before its end.
    const std::size_t records_max = 2 * (std::size_t{options.table_entries} + 2 * kOperatorEntriesMax);
    static_assert(2 * (kTableEntriesMax + 2 * kOperatorEntriesMax) <= kRecordPlacesMax);
    auto opened =
        RecordFile::open({options.state_dir + "/mitigations.records", records_max, node_id(options.node)}, notes);
    if (opened) {
      records = *std::move(opened);
    } else if (opened.error().ends_with(kInUse)) {
      return Error{opened.error()};
    } else {
      notes.push_back(opened.error() + "; mitigations are not recorded and end when the daemon restarts");
    }
  }
  return std::unique_ptr<Publisher>(new Publisher(*std::move(table), std::move(records), options));
}

Publisher::Publisher(std::unique_ptr<TableWriter> table, std::unique_ptr<RecordFile> records,
                     const PublisherOptions& options)
    : table_(std::move(table)),
      records_(std::move(records)),
      brakes_(table_->file(),
              options.state_dir.empty()
                  ? nullptr
                  : std::make_unique<BrakeFile>(options.state_dir + "/brakes", node_id(options.node)),
              options.loop) {}

Restored Publisher::restore(const std::function<void(Mitigation)>& give, HostInstant now, PopInstant wall) {
  if (!records_) return {};
  const auto load = records_->load(give, now, wall);
  if (!load) {
    spdlog::error("{}; what was read so far is used", load.error());
    return {false, 0, records_->records(), 0, 0};
  }
  if (load->damaged > 0) spdlog::warn("record file: {} damaged records were skipped", load->damaged);
  return {load->found, load->counter, load->records, load->damaged, load->rebooted};
}

void Publisher::reconcile(const std::function<std::optional<Enforcement>(const Key&)>& enforcement, HostInstant now) {
  std::vector<Key> keys = records_ ? records_->keys() : std::vector<Key>{};
  keys.insert(keys.end(), early_keys_.begin(), early_keys_.end());
  early_keys_.clear();
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  std::vector<Enforcement> wanted;
  for (const Key& key : keys) {
    if (auto one = enforcement(key)) wanted.push_back(*one);
  }
  table_->reconcile(wanted, now);
  reconciled_ = true;
}

void Publisher::publish(const Mitigation& mitigation, const std::optional<Enforcement>& enforcement, HostInstant now) {
  // What ended and has no record needs none. What ended and has one may have replaced a longer entry: written anew.
  const bool is_worth_it =
      mitigation.until > now || (records_ && records_->holds({mitigation.key, kind_of(mitigation)}));
  if (records_ && is_worth_it) note_record(records_->put(mitigation), now);
  enforce(mitigation.key, enforcement, now);
}

void Publisher::enforce(const Key& key, const std::optional<Enforcement>& enforcement, HostInstant now) {
  if (!reconciled_) {
    early_keys_.push_back(key);
    return;
  }
  if (!enforcement) {
    table_->remove(key);
  } else if (!table_->put(*enforcement, now) && refusal_log_.allow(now)) {
    spdlog::warn("mitigation table: no room for key {} ({} of {} entries used); it is tried again as entries end",
                 key_text(key), table_->entries(), table_->entries_max());
  }
}

bool Publisher::sweep(HostInstant now) {
  const bool more_entries = reconciled_ && table_->sweep(now);
  const bool more_records = records_ && records_->sweep(kRecordSweepPerCall, now) > 0;
  return more_entries || more_records;
}

void Publisher::heartbeat(HostInstant now) {
  if (reconciled_) table_->heartbeat(now);
}

void Publisher::note_record(const Status& status, HostInstant now) {
  if (status) return;
  ++unrecorded_;
  if (record_log_.allow(now))
    spdlog::error("{}; the mitigation is in force but will not outlive the daemon", status.error());
}

void Publisher::visit(const MetricVisitor& visitor) const {
  table_->visit(visitor);
  if (records_) records_->visit(visitor);
  brakes_.visit(visitor);
  visitor({"popgate_publish_unrecorded_total", "entries", "Changes that could not be written to the record file.",
           static_cast<double>(unrecorded_), true, "", ""});
}

}  // namespace popgate
