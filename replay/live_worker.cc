// SPDX-License-Identifier: Apache-2.0
#include "replay/live_worker.h"

#include <popgate/popgate.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace popgate {
namespace {

constexpr microseconds kTickEvery = milliseconds(100);
constexpr microseconds kLookEvery = milliseconds(1);

// Precise, unlike PopClock: crossings are timed with it.
PopInstant wall_now() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return PopInstant(std::chrono::seconds(t.tv_sec) + microseconds(t.tv_nsec / 1000));
}

void sleep_for(microseconds time) {
  if (time.count() <= 0) return;
  const timespec t{time.count() / 1'000'000, time.count() % 1'000'000 * 1000};
  nanosleep(&t, nullptr);
}

int header_of(void* context, const char* name, size_t name_bytes, const char** value, size_t* value_bytes) {
  const Request request = request_of(*static_cast<const LoggedRequest*>(context));
  std::string_view text;
  if (!request.header(request.header_context, {name, name_bytes}, text)) return 0;
  *value = text.data();
  *value_bytes = text.size();
  return 1;
}

popgate_request request_to_send(const LoggedRequest& logged) {
  popgate_request request = POPGATE_REQUEST_INIT;
  request.method = logged.method.data();
  request.method_bytes = logged.method.size();
  request.host = logged.host.data();
  request.host_bytes = logged.host.size();
  request.path = logged.path.data();
  request.path_bytes = logged.path.size();
  std::memcpy(request.client.octets, logged.client.octets, sizeof request.client.octets);
  request.client.bytes = logged.client.bytes;
  request.header = header_of;
  request.header_context = const_cast<LoggedRequest*>(&logged);  // only read
  return request;
}

class Worker {
 public:
  explicit Worker(const LiveWorkerSetup& setup) : setup_(setup), control_(setup.memory.control()) {}
  ~Worker() { popgate_close(gate_); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  [[nodiscard]] bool attach();
  void run();
  [[nodiscard]] popgate_statistics statistics() const;

 private:
  [[nodiscard]] bool stopped() const { return control_.stop.load(std::memory_order_acquire) != 0; }
  [[nodiscard]] std::uint32_t rule_number(const popgate_verdict& verdict) const;
  void send(std::size_t request);
  void idle_until(PopInstant time);
  void look();
  [[nodiscard]] bool look_at(std::uint32_t index, PopInstant now);
  void tick(PopInstant now);

  const LiveWorkerSetup& setup_;
  LiveControl& control_;
  popgate_client* gate_ = nullptr;
  std::vector<std::uint32_t> watching_;
  std::uint32_t watches_taken_ = 0;
  PopInstant ticked_at_{};
};

popgate_statistics Worker::statistics() const {
  popgate_statistics statistics = POPGATE_STATISTICS_INIT;
  popgate_get_statistics(gate_, &statistics);
  return statistics;
}

bool Worker::attach() {
  const std::string name = "replay-" + std::to_string(setup_.index + 1);
  popgate_options options = POPGATE_OPTIONS_INIT;
  options.worker_name = name.c_str();
  if (popgate_open(setup_.socket.c_str(), &options, &gate_) != POPGATE_OK) return false;
  const PopInstant give_up = wall_now() + setup_.attach_timeout;
  while (statistics().attached == 0) {
    if (stopped() || wall_now() > give_up) return false;
    popgate_tick(gate_);
    sleep_for(milliseconds(5));
  }
  return true;
}

void Worker::tick(PopInstant now) {
  if (now - ticked_at_ < kTickEvery) return;
  ticked_at_ = now;
  popgate_tick(gate_);
}

std::uint32_t Worker::rule_number(const popgate_verdict& verdict) const {
  const Rule* rule = setup_.rules.by_name(verdict.rule);
  return rule == nullptr ? 0 : rule->number;
}

void Worker::send(std::size_t index) {
  const popgate_request request = request_to_send(setup_.plan.requests[index].logged);
  popgate_verdict verdict = POPGATE_VERDICT_INIT;
  const PopInstant sent = wall_now();
  const bool blocked = popgate_check(gate_, &request, &verdict) == POPGATE_BLOCK;
  LiveResult& result = setup_.memory.result(index);
  result.blocked = blocked ? 1 : 0;
  result.would_block = verdict.would_block != 0 ? 1 : 0;
  if (blocked || verdict.would_block != 0) {
    result.rule = rule_number(verdict);
    result.retry_after_s = verdict.retry_after_s;
  }
  result.sent_us.store(sent.time_since_epoch().count(), std::memory_order_release);
}

// True when there is nothing more to look for.
bool Worker::look_at(std::uint32_t index, PopInstant now) {
  LiveWatch& watch = setup_.memory.watch(index);
  if (now.time_since_epoch().count() - watch.crossed_us > microseconds(kWatchTimeout).count()) return true;
  const popgate_request request = request_to_send(setup_.plan.requests[watch.request].logged);
  popgate_verdict verdict = POPGATE_VERDICT_INIT;
  const bool blocked = popgate_peek(gate_, &request, &verdict) == POPGATE_BLOCK;
  if (!blocked && verdict.would_block == 0) return false;
  const bool same = rule_number(verdict) == watch.rule;
  LiveWatch::Seen& seen = watch.seen[setup_.index];
  seen.retry_after_s.store(verdict.retry_after_s, std::memory_order_relaxed);
  seen.at_us.store(same ? wall_now().time_since_epoch().count() : LiveWatch::kOtherRule, std::memory_order_release);
  return true;
}

void Worker::look() {
  const std::uint32_t watches = control_.watches.load(std::memory_order_acquire);
  while (watches_taken_ < watches && watching_.size() < kWatchedAtOnce) watching_.push_back(watches_taken_++);
  const PopInstant now = wall_now();
  std::erase_if(watching_, [&](std::uint32_t index) { return look_at(index, now); });
}

void Worker::idle_until(PopInstant time) {
  for (PopInstant now = wall_now(); !stopped(); now = wall_now()) {
    tick(now);
    look();
    if (now >= time) return;
    sleep_for(std::min<microseconds>(kLookEvery, time - now));
  }
}

void Worker::run() {
  while (control_.start_us.load(std::memory_order_acquire) == 0) {
    if (stopped()) return;
    popgate_tick(gate_);
    sleep_for(milliseconds(1));
  }
  const PopInstant start(microseconds(control_.start_us.load(std::memory_order_acquire)));
  PopInstant looked{};
  for (std::size_t i = 0; i < setup_.plan.requests.size() && !stopped(); ++i) {
    const PlannedRequest& planned = setup_.plan.requests[i];
    if (planned.worker != setup_.index) continue;
    const PopInstant now = wall_now();
    if (now < start + planned.offset || now - looked >= kLookEvery) {
      idle_until(start + planned.offset);
      looked = wall_now();
    }
    send(i);
  }
  const PopInstant end = wall_now() + kSettleTime;
  do {
    idle_until(std::min(end, wall_now() + 10 * kLookEvery));
  } while (!stopped() && !watching_.empty() && wall_now() < end);
  idle_until(wall_now() + kTickEvery);
}

}  // namespace

int run_live_worker(const LiveWorkerSetup& setup) {
  LiveWorkerFigures& figures = setup.memory.control().workers[setup.index];
  const auto enter = [&](WorkerState state) {
    figures.state.store(static_cast<std::uint32_t>(state), std::memory_order_release);
  };
  Worker worker(setup);
  if (!worker.attach()) {
    enter(WorkerState::kCannotAttach);
    return 1;
  }
  enter(WorkerState::kAttached);
  worker.run();
  const popgate_statistics statistics = worker.statistics();
  figures.checks_detached = statistics.checks_detached;
  figures.hits_recorded = statistics.hits_recorded;
  figures.hits_dropped = statistics.hits_dropped;
  enter(WorkerState::kDone);
  return 0;
}

}  // namespace popgate
