// SPDX-License-Identifier: Apache-2.0
//
// One process of the model: a Reactor whose time is its machine's, and whose loop can be slow, stopped and killed.
//
// A stopped process (SIGSTOP, or a host that does not schedule it) runs nothing; what comes due meanwhile runs, in its
// order, when it goes on, and finds that time has passed. A killed process is destroyed by its owner between two
// events; what its kernel had been given already still travels.
//
// Threads: one.
// Invariants: 1. A call-back never runs from within a call that its owner made, nor after the process or the timer was
//                destroyed.
//             2. No timer is early by the machine's clock.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "daemon/reactor.h"
#include "tests/simulation/machine.h"

namespace popgate::simulation {

class Process final : public Reactor {
 public:
  Process(World& world, const Machine& machine, Random& random);
  ~Process() override;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] HostInstant host_now() const override { return machine_.host_now(); }
  [[nodiscard]] PopInstant wall_now() const override { return machine_.wall_now(); }
  [[nodiscard]] std::unique_ptr<ReactorTimer> make_timer(std::function<void()> callback) override;

  /// Runs on this process's loop soon: within `turn_max()`.
  void post(std::function<void()> task);
  /// The same, not before `when`.
  void post_at(ModelInstant when, std::function<void()> task);

  void pause();
  void resume();
  [[nodiscard]] bool is_paused() const { return loop_->paused; }
  /// How long the loop may need to come to what is due: a busy machine.
  void slow_down(microseconds turn_max) { loop_->turn_max = turn_max; }
  static constexpr microseconds kTurnMax{60};
  /// Called after each task; a simulated PoP checks what must always hold.
  void on_turn(std::function<void()> look) { loop_->look = std::move(look); }

  [[nodiscard]] World& world() { return world_; }
  [[nodiscard]] const Machine& machine() const { return machine_; }

 private:
  class ModelTimer;
  // Outlives the process in the events that name it.
  struct Loop {
    bool alive = true;
    bool paused = false;
    microseconds turn_max = kTurnMax;
    std::deque<std::function<void()>> waiting;  // came due while paused
    std::function<void()> look;
    void run(const std::function<void()>& task);
  };

  World& world_;
  const Machine& machine_;
  Random& random_;
  std::shared_ptr<Loop> loop_;
};

}  // namespace popgate::simulation
