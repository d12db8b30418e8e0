// SPDX-License-Identifier: Apache-2.0
#include "daemon/publish/record_keeper.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "daemon/mitigate/precedence.h"

namespace popgate {

RecordKeeper::RecordKeeper(RecordFile::Options options, const EventLoop* loop) : options_(std::move(options)) {
  if (loop != nullptr) opening_ = std::make_unique<BackgroundTask>(*loop);
}

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
  if (!file_ || is_giving()) return wait(mitigation, now);  // told when the file could not be opened
  const Status written = file_->put(mitigation);
  if (written) {
    unrecorded_.erase({mitigation.key, kind_of(mitigation)});
    return;
  }
  ++failures_;
  wait(mitigation, now);
  if (log_.allow(now))
    spdlog::error("{}; the mitigation is in force, and recorded when that is possible", written.error());
}

void RecordKeeper::wait(const Mitigation& mitigation, HostInstant now) {
  if (!unrecorded_.put(mitigation, now)) ++given_up_;
}

std::vector<Key> RecordKeeper::retry(HostInstant now) {
  if (options_.path.empty()) return {};
  if (now >= retry_at_) {
    retry_at_ = now + kRecordRetryInterval;
    if (!file_) reopen(now);
    if (file_ && !is_giving() && unrecorded_.size() > 0) record_waiting(now);
  }
  return give_some();
}

RecordKeeper::Reopened RecordKeeper::reopened(const RecordFile::Options& options, HostInstant now, PopInstant wall) {
  Reopened reopened;
  auto opened = RecordFile::open(options, reopened.notes);
  if (!opened) return reopened;
  const auto take = [&](Mitigation entry) { reopened.entries.push_back(std::move(entry)); };
  const auto load = (*opened)->load(take, now, wall);
  if (!load) reopened.notes.push_back(load.error() + "; what was read so far is used");
  reopened.file = *std::move(opened);
  return reopened;
}

void RecordKeeper::reopen(HostInstant now) {
  const PopInstant wall(now.time_since_epoch() + wall_ahead_);
  if (!opening_) return use(reopened(options_, now, wall));
  if (opening_->is_running()) return;
  const auto result = std::make_shared<Reopened>();
  opening_->start([result, options = options_, now, wall] { *result = reopened(options, now, wall); },
                  [this, result] { use(std::move(*result)); });
}

void RecordKeeper::use(Reopened reopened) {
  if (!reopened.file) return;
  for (const std::string& note : reopened.notes) spdlog::warn("{}", note);
  file_ = std::move(reopened.file);
  to_give_ = std::move(reopened.entries);
  read_keys_.clear();
  retry_at_ = {};  // what waits is recorded at the next turn, or when all is given
  spdlog::info("{}: can be written again", options_.path);
}

// The set knows which stands when it has another version by now, and so must the file.
std::vector<Key> RecordKeeper::give_some() {
  std::vector<Key> given;
  while (!to_give_.empty() && given.size() < kGivenPerTurn) {
    const EntryId id{to_give_.back().key, kind_of(to_give_.back())};
    const Mitigation* const waiting = unrecorded_.find(id);
    if (waiting != nullptr && precedence(to_give_.back(), *waiting) > 0) unrecorded_.erase(id);
    given.push_back(id.key);
    give_(std::move(to_give_.back()));
    to_give_.pop_back();
  }
  if (to_give_.empty()) to_give_.shrink_to_fit();  // 176 MB at the default `table_entries`
  return given;
}

void RecordKeeper::record_waiting(HostInstant now) {
  for (std::size_t tried = 0; unrecorded_.size() > 0 && tried < kRetriesPerTurn; ++tried) {
    const Mitigation& waiting = unrecorded_.first();
    const EntryId id{waiting.key, kind_of(waiting)};
    const bool is_worth_it = waiting.until > now || file_->holds(id);
    if (is_worth_it && !file_->put(waiting)) {
      ++failures_;
      return;
    }
    unrecorded_.erase(id);
  }
  if (unrecorded_.size() == 0) spdlog::info("{}: everything that is in force is recorded again", options_.path);
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
