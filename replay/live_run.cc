// SPDX-License-Identifier: Apache-2.0
#include "replay/live_run.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "replay/crossing_finder.h"
#include "replay/live_judgement.h"
#include "replay/live_memory.h"
#include "replay/live_worker.h"

namespace popgate {
namespace {

constexpr int kStepMs = 1;
constexpr microseconds kProgressEvery = milliseconds(100);
constexpr microseconds kStopTime = std::chrono::seconds(2);
constexpr microseconds kStartsIn = milliseconds(50);  // so that every worker sees the start before it comes

// SIGINT and SIGTERM as a descriptor. Workers inherit the blocked signals: Ctrl-C reaches the whole process group, and
// they are to end in order, told by the parent.
class SignalWatch {
 public:
  SignalWatch() {
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGINT);
    sigaddset(&wanted, SIGTERM);
    sigprocmask(SIG_BLOCK, &wanted, &before_);
    fd_ = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  ~SignalWatch() {
    signalfd_siginfo ignored;
    while (fd_ >= 0 && read(fd_, &ignored, sizeof ignored) > 0) {
    }
    if (fd_ >= 0) close(fd_);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  /// Waits a step, or less when a signal comes. True: it came.
  [[nodiscard]] bool wait_step() {
    pollfd wait{fd_, POLLIN, 0};
    return poll(&wait, 1, kStepMs) > 0;
  }

 private:
  sigset_t before_{};
  int fd_ = -1;
};

// The forked workers. None outlives this object.
class Workers {
 public:
  explicit Workers(LiveMemory& memory) : memory_(memory) {}
  ~Workers() { end(); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  [[nodiscard]] Status start(const LiveWorkerSetup& setup) {
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) return Error{std::string("cannot start a worker process: ") + std::strerror(errno)};
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      _exit(run_live_worker(setup));
    }
    pids_.push_back(pid);
    return {};
  }

  [[nodiscard]] bool all_in(WorkerState state) const { return count(state) == pids_.size(); }
  [[nodiscard]] bool any_in(WorkerState state) const { return count(state) > 0; }
  /// Index of a worker that has ended without being done; -1: none.
  [[nodiscard]] int dead() {
    for (std::size_t i = 0; i < pids_.size(); ++i) {
      if (pids_[i] > 0 && waitpid(pids_[i], nullptr, WNOHANG) == pids_[i]) {
        pids_[i] = 0;
        if (state_of(i) != WorkerState::kDone && state_of(i) != WorkerState::kCannotAttach) return static_cast<int>(i);
      }
    }
    return -1;
  }
  /// Asks all to end and waits, at most kStopTime; what still runs then is killed.
  void end() {
    memory_.control().stop.store(1, std::memory_order_release);
    const HostInstant deadline = HostClock::now() + kStopTime;
    for (pid_t& pid : pids_) {
      while (pid > 0 && waitpid(pid, nullptr, WNOHANG) == 0) {
        if (HostClock::now() > deadline) {
          kill(pid, SIGKILL);
          waitpid(pid, nullptr, 0);
          break;
        }
        usleep(1000);
      }
      pid = 0;
    }
  }

 private:
  [[nodiscard]] WorkerState state_of(std::size_t worker) const {
    return static_cast<WorkerState>(memory_.control().workers[worker].state.load(std::memory_order_acquire));
  }
  [[nodiscard]] std::size_t count(WorkerState state) const {
    std::size_t found = 0;
    for (std::size_t i = 0; i < pids_.size(); ++i) found += state_of(i) == state ? 1 : 0;
    return found;
  }

  LiveMemory& memory_;
  std::vector<pid_t> pids_;
};

class LiveRun {
 public:
  LiveRun(const LivePlan& plan, const RuleMatcher& matcher, const LiveOptions& options, LiveMemory& memory)
      : plan_(plan),
        matcher_(matcher),
        options_(options),
        memory_(memory),
        workers_(memory),
        finder_(plan, matcher, memory, static_cast<unsigned>(options.sockets.size())) {}

  [[nodiscard]] Result<Report> run() {
    if (Status started = start_workers(); !started) return Error{started.error()};
    if (Status attached = wait_attached(); !attached) return Error{attached.error()};
    if (!interrupted_) {
      const PopInstant start = PopClock::now() + kStartsIn;
      memory_.control().start_us.store(start.time_since_epoch().count(), std::memory_order_release);
      if (Status done = wait_done(); !done) return Error{done.error()};
    }
    workers_.end();
    Report report = judge_live_run(plan_, matcher_, memory_, static_cast<unsigned>(options_.sockets.size()));
    report.live.interrupted = interrupted_;
    return report;
  }

 private:
  [[nodiscard]] Status start_workers() {
    for (unsigned i = 0; i < options_.sockets.size(); ++i) {
      Status started =
          workers_.start({plan_, *matcher_.rules(), memory_, i, options_.sockets[i], options_.attach_timeout});
      if (!started) return started;
    }
    return {};
  }

  [[nodiscard]] Status wait_attached() {
    while (!workers_.all_in(WorkerState::kAttached) && !interrupted_) {
      interrupted_ = signals_.wait_step();
      if (const int dead = workers_.dead(); dead >= 0) return death_of(dead);
      for (unsigned i = 0; i < options_.sockets.size(); ++i) {
        const auto state = memory_.control().workers[i].state.load(std::memory_order_acquire);
        if (state == static_cast<std::uint32_t>(WorkerState::kCannotAttach)) {
          return Error{options_.sockets[i] + ": no daemon attached this worker in time"};
        }
      }
    }
    return {};
  }

  [[nodiscard]] Status wait_done() {
    const HostInstant deadline = HostClock::now() + kStartsIn + plan_.length + kSettleTime + kGraceTime;
    HostInstant told = HostClock::now();
    while (!workers_.all_in(WorkerState::kDone) && !interrupted_) {
      interrupted_ = signals_.wait_step();
      finder_.look();
      if (const int dead = workers_.dead(); dead >= 0) return death_of(dead);
      const HostInstant now = HostClock::now();
      if (now > deadline) return Error{"the workers did not keep up with the plan; choose a lower speed-up"};
      if (now - told < kProgressEvery) continue;
      told = now;
      if (options_.on_progress) options_.on_progress(finder_.results());
    }
    return {};
  }

  [[nodiscard]] Error death_of(int worker) const {
    return Error{"the worker process for " + options_.sockets[static_cast<std::size_t>(worker)] + " died"};
  }

  const LivePlan& plan_;
  const RuleMatcher& matcher_;
  const LiveOptions& options_;
  LiveMemory& memory_;
  SignalWatch signals_;  // before the workers, who inherit what is blocked
  Workers workers_;
  CrossingFinder finder_;
  bool interrupted_ = false;
};

}  // namespace

Result<Report> run_live(const LivePlan& plan, const RuleMatcher& matcher, const LiveOptions& options) {
  if (options.sockets.empty() || options.sockets.size() > kLiveWorkersMax) {
    return Error{"worker sockets: found " + std::to_string(options.sockets.size()) + ", allowed: 1 to 16"};
  }
  if (plan.requests.empty()) return Error{"there is no request to send"};
  Result<std::unique_ptr<LiveMemory>> memory = LiveMemory::make(plan.requests.size());
  if (!memory) return Error{memory.error()};
  LiveRun run(plan, matcher, options, **memory);
  return run.run();
}

}  // namespace popgate
