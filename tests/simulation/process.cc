// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/process.h"

#include <algorithm>
#include <utility>

namespace popgate::simulation {

// Each start is another shot; one that was replaced or stopped finds another number and does nothing.
class Process::ModelTimer final : public ReactorTimer {
 public:
  ModelTimer(Process& process, std::function<void()> callback) : process_(process), shot_(std::make_shared<Shot>()) {
    shot_->callback = std::move(callback);
  }
  ~ModelTimer() override { ++shot_->number; }
  ModelTimer(const ModelTimer&) = delete;
  ModelTimer& operator=(const ModelTimer&) = delete;

  void start(microseconds delay, bool again) override {
    ++shot_->number;
    fire_at(process_, shot_, process_.host_now() + delay, again ? delay : microseconds(0));
  }
  void stop() override { ++shot_->number; }

 private:
  struct Shot {
    std::uint64_t number = 0;
    std::function<void()> callback;
  };

  // As libevent: the next of a series is counted from when this one was due, unless that has passed.
  static void fire_at(Process& process, const std::shared_ptr<Shot>& shot, HostInstant due, microseconds period) {
    const std::uint64_t number = shot->number;
    process.post_at(process.machine_.true_time_at(due), [&process, shot, number, due, period] {
      if (shot->number != number) return;
      if (period > microseconds(0)) {
        const HostInstant now = process.host_now();
        fire_at(process, shot, due + period > now ? due + period : now + period, period);
      }
      shot->callback();
    });
  }

  Process& process_;
  std::shared_ptr<Shot> shot_;
};

Process::Process(World& world, const Machine& machine, Random& random)
    : world_(world), machine_(machine), random_(random), loop_(std::make_shared<Loop>()) {}

Process::~Process() {
  loop_->alive = false;
  loop_->waiting.clear();
}

std::unique_ptr<ReactorTimer> Process::make_timer(std::function<void()> callback) {
  return std::make_unique<ModelTimer>(*this, std::move(callback));
}

void Process::Loop::run(const std::function<void()>& task) {
  if (!alive) return;
  task();
  if (alive && look) look();
}

void Process::post(std::function<void()> task) { post_at(world_.now(), std::move(task)); }

void Process::post_at(ModelInstant when, std::function<void()> task) {
  const ModelInstant soon = std::max(when, world_.now()) + draw(random_, microseconds(1), loop_->turn_max);
  world_.at(soon, [loop = loop_, task = std::move(task)] {
    if (!loop->alive) return;
    if (loop->paused) {
      loop->waiting.push_back(task);
      return;
    }
    loop->run(task);
  });
}

void Process::pause() { loop_->paused = true; }

void Process::resume() {
  // One event for all: nothing that comes due now may overtake them.
  world_.at(world_.now(), [loop = loop_] {
    loop->paused = false;
    while (loop->alive && !loop->paused && !loop->waiting.empty()) {
      const std::function<void()> task = std::move(loop->waiting.front());
      loop->waiting.pop_front();
      loop->run(task);
    }
  });
}

}  // namespace popgate::simulation
