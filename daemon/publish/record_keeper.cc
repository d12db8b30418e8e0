// SPDX-License-Identifier: Apache-2.0
#include "daemon/publish/record_keeper.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace popgate {

Status RecordKeeper::open(std::vector<std::string>& notes) {
  if (options_.path.empty()) {
    notes.emplace_back("no state_dir: mitigations are not recorded and end when the daemon restarts");
    return {};
  }
  auto opened = RecordFile::open(options_, notes);
  if (opened) {
    file_ = *std::move(opened);
    return {};
  }
  if (opened.error().ends_with(kInUse)) return Error{opened.error()};
  notes.push_back(opened.error() +
                  "; mitigations are in force, but until it can be written a restart forgets them; it is tried again");
  if (auto readable = RecordFile::open_read_only(options_)) read_ = *std::move(readable);
  return {};
}

RecordFile::Load RecordKeeper::load(GiveFunction give, HostInstant now, PopInstant wall) {
  give_ = std::move(give);
  wall_ahead_ = wall.time_since_epoch() - now.time_since_epoch();
  RecordFile* const source = file_ ? file_.get() : read_.get();
  if (source == nullptr) return {};
  const auto load = source->load(give_, now, wall);
  if (!load) spdlog::error("{}; what was read so far is used", load.error());
  if (load && load->damaged > 0) spdlog::warn("record file: {} damaged records were skipped", load->damaged);
  if (read_) read_keys_ = read_->keys();
  RecordFile::Load result;
  result.records = source->records();
  read_.reset();
  if (load) result = *load;
  if (!file_) result.found = false;  // its promise of counters cannot be raised: as if nothing was remembered
  return result;
}

bool RecordKeeper::holds(const EntryId& id) const { return unrecorded_.contains(id) || (file_ && file_->holds(id)); }

void RecordKeeper::put(const Mitigation& mitigation, HostInstant now) {
  if (options_.path.empty()) return;
  if (!file_) return wait(mitigation);  // told when the file could not be opened
  const Status written = file_->put(mitigation);
  if (written) {
    unrecorded_.erase({mitigation.key, kind_of(mitigation)});
    return;
  }
  ++failures_;
  wait(mitigation);
  if (log_.allow(now))
    spdlog::error("{}; the mitigation is in force, and recorded when that is possible", written.error());
}

void RecordKeeper::wait(const Mitigation& mitigation) {
  const EntryId id{mitigation.key, kind_of(mitigation)};
  if (unrecorded_.size() >= kUnrecordedMax && !unrecorded_.contains(id)) {
    ++given_up_;
    return;
  }
  unrecorded_[id] = mitigation;
}

std::vector<Key> RecordKeeper::retry(HostInstant now) {
  if (options_.path.empty() || now < retry_at_) return {};
  retry_at_ = now + kRecordRetryInterval;
  std::vector<Key> given;
  if (!file_) given = reopen(now);
  if (file_ && !unrecorded_.empty()) record_waiting(now);
  return given;
}

std::vector<Key> RecordKeeper::reopen(HostInstant now) {
  std::vector<std::string> notes;
  auto opened = RecordFile::open(options_, notes);
  if (!opened) return {};
  for (const std::string& note : notes) spdlog::warn("{}", note);
  file_ = *std::move(opened);
  const PopInstant wall(now.time_since_epoch() + wall_ahead_);
  if (const auto load = file_->load(give_, now, wall); !load) spdlog::error("{}", load.error());
  read_keys_.clear();
  spdlog::info("{}: can be written again", options_.path);
  return file_->keys();
}

void RecordKeeper::record_waiting(HostInstant now) {
  std::size_t tried = 0;
  for (auto it = unrecorded_.begin(); it != unrecorded_.end() && tried < kRetriesPerTurn; ++tried) {
    const bool is_worth_it = it->second.until > now || file_->holds(it->first);
    if (is_worth_it && !file_->put(it->second)) {
      ++failures_;
      return;
    }
    it = unrecorded_.erase(it);
  }
  if (unrecorded_.empty()) spdlog::info("{}: everything that is in force is recorded again", options_.path);
}

void RecordKeeper::visit(const MetricVisitor& visitor) const {
  if (file_) file_->visit(visitor);
  visitor({"popgate_publish_unrecorded", "entries",
           "Entries in force that could not be recorded yet: a restart now would forget them.",
           static_cast<double>(unrecorded_.size()), false, "", ""});
  visitor({"popgate_publish_unrecorded_total", "entries",
           "Changes that could not be written to the record file at once.", static_cast<double>(failures_), true, "",
           ""});
  visitor({"popgate_publish_unrecorded_given_up_total", "entries",
           "Of these, more than can wait: they end when the daemon does.", static_cast<double>(given_up_), true, "",
           ""});
}

}  // namespace popgate
