// SPDX-License-Identifier: Apache-2.0
#include "daemon/publish/publisher.h"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace popgate {

Result<std::unique_ptr<Publisher>> Publisher::open(const PublisherOptions& options, std::vector<std::string>& notes) {
  auto table =
      TableWriter::open(options.run_dir + "/mitigations.table", options.table_entries, options.incarnation, notes);
  if (!table) return Error{table.error()};
  // What the set of mitigations may hold, and as much again for what it drops before its end.
  const std::size_t records_max = 2 * (std::size_t{options.table_entries} + 2 * kOperatorEntriesMax);
  static_assert(2 * (kTableEntriesMax + 2 * kOperatorEntriesMax) <= kRecordPlacesMax);
  const std::string path = options.state_dir.empty() ? "" : options.state_dir + "/mitigations.records";
  auto records =
      std::make_unique<RecordKeeper>(RecordFile::Options{path, records_max, node_id(options.node)}, options.loop);
  if (const Status opened = records->open(notes); !opened) return Error{opened.error()};
  return std::unique_ptr<Publisher>(new Publisher(*std::move(table), std::move(records), options));
}

Publisher::Publisher(std::unique_ptr<TableWriter> table, std::unique_ptr<RecordKeeper> records,
                     const PublisherOptions& options)
    : table_(std::move(table)),
      records_(std::move(records)),
      brakes_(table_->file(),
              options.state_dir.empty()
                  ? nullptr
                  : std::make_unique<BrakeFile>(options.state_dir + "/brakes", node_id(options.node)),
              options.loop) {}

Restored Publisher::restore(std::function<void(Mitigation)> give, HostInstant now, PopInstant wall) {
  const RecordFile::Load load = records_->load(std::move(give), now, wall);
  return {load.found, load.counter, load.records, load.damaged, load.rebooted};
}

void Publisher::reconcile(std::function<std::optional<Enforcement>(const Key&)> enforcement, HostInstant now) {
  enforcement_ = std::move(enforcement);
  std::vector<Key> keys = records_->keys();
  keys.insert(keys.end(), early_keys_.begin(), early_keys_.end());
  early_keys_.clear();
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  std::vector<Enforcement> wanted;
  for (const Key& key : keys) {
    if (auto one = enforcement_(key)) wanted.push_back(*one);
  }
  table_->reconcile(wanted, now);
  reconciled_ = true;
}

void Publisher::publish(const Mitigation& mitigation, const std::optional<Enforcement>& enforcement, HostInstant now) {
  // What ended and has no record needs none. What ended and has one may have replaced a longer entry: written anew.
  const bool is_worth_it = mitigation.until > now || records_->holds({mitigation.key, kind_of(mitigation)});
  if (is_worth_it) records_->put(mitigation, now);
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
  const bool more_records = records_->sweep(kRecordSweepPerCall, now) > 0;
  for (const Key& key : records_->retry(now)) enforce(key, enforcement_(key), now);
  return more_entries || more_records;
}

void Publisher::heartbeat(HostInstant now) {
  if (reconciled_) table_->heartbeat(now);
}

void Publisher::visit(const MetricVisitor& visitor) const {
  table_->visit(visitor);
  records_->visit(visitor);
  brakes_.visit(visitor);
}

}  // namespace popgate
