// SPDX-License-Identifier: Apache-2.0
#include "tests/process/traffic.h"

#include <stdexcept>
#include <utility>

namespace popgate::process {
namespace {

constexpr std::uint64_t kTickEvery = 4;  // lots

}  // namespace

std::string traffic_client(int index) {
  return "198.18." + std::to_string(index / 250) + "." + std::to_string(index % 250 + 1);
}

Traffic::Traffic(const Node& node, TrafficPlan plan) : plan_(std::move(plan)), thread_([this, &node] { run(node); }) {
  if (!eventually([this] { return attached(); })) {
    {
      const std::scoped_lock lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
    throw std::runtime_error(node.name() + " welcomes no worker");
  }
}

Traffic::~Traffic() {
  {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Traffic::resume() {
  const std::scoped_lock lock(mutex_);
  wanted_ = true;
  idle_ = false;
  changed_.notify_all();
}

void Traffic::pause() {
  std::unique_lock lock(mutex_);
  wanted_ = false;
  changed_.wait(lock, [this] { return idle_; });
}

// Paused or not, it ticks and looks: a pause stops requests only.
void Traffic::run(const Node& node) {
  Worker worker(node, plan_.ring_slots);
  std::unique_lock lock(mutex_);
  for (std::uint64_t lots = 0; !ended_; ++lots) {
    const bool sends = wanted_;
    if (!sends && !idle_) {
      idle_ = true;
      changed_.notify_all();
    }
    lock.unlock();
    if (sends) send_lot(worker);
    if (lots % kTickEvery == 0 || !attached_) worker.tick();
    const popgate_statistics statistics = worker.statistics();
    attached_ = statistics.attached == 1;
    dropped_ = statistics.hits_dropped;
    if (statistics.attaches > 0) look(worker);
    lock.lock();
    changed_.wait_for(lock, plan_.apart, [this] { return ended_; });
  }
}

void Traffic::send_lot(Worker& worker) {
  for (int i = 0; i < plan_.lot; ++i) {
    worker.request(traffic_client(static_cast<int>(sent_ % static_cast<std::uint64_t>(plan_.clients))));
    ++sent_;
  }
}

void Traffic::look(Worker& worker) {
  for (const std::string& client : plan_.must_be_blocked) {
    ++looks_;
    if (!worker.is_blocked(client)) ++passed_through_;
  }
}

}  // namespace popgate::process
