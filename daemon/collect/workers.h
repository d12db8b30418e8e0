// SPDX-License-Identifier: Apache-2.0
//
// All attached workers: accepts them, hands them table and rules, and polls their rings.
//
// Rings are polled and not waited for, because waking the daemon would cost the worker a system call on the request
// path. The interval adapts: kPollBusy after a turn that found hits, kPollIdle after one that did not, at once while
// more waits than a turn takes, and no timer at all while there is no worker.
//
// Threads: the event loop's.
// Invariants: 1. A turn takes at most kHitsPerTurn slots and kHitsPerRingTurn of one ring, and begins where the last
//                one ended, so that one ring cannot starve the others nor the loop.
//             2. The clock is read after a ring's head: a hit never seems to come from the future because the daemon
//                was slow.
// Limits: workers_max connections; one more is refused with that reason. A worker that died without a goodbye while no
//         daemon ran takes its ring with it: its hits are not in the account.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "daemon/collect/ledger.h"
#include "daemon/collect/worker.h"
#include "daemon/event_loop.h"
#include "daemon/log_limiter.h"
#include "daemon/metrics.h"
#include "daemon/result.h"
#include "daemon/unix_listener.h"
#include "libclient/instant.h"

namespace popgate {

struct SocketPeer;

static_assert(kWorkersMax < kRingAccountsMax, "an attached ring's account is never forgotten");
inline constexpr std::uint64_t kHitsPerTurn = 16384;  // about 1 ms
inline constexpr std::uint64_t kHitsPerRingTurn = 4096;
inline constexpr milliseconds kPollBusy{1};
inline constexpr milliseconds kPollIdle{2};
inline constexpr milliseconds kFoldPeriod{100};
inline constexpr milliseconds kAcceptPause{1000};  // after the process ran out of descriptors
inline constexpr unsigned kAcceptsPerTurn = 16;
inline constexpr int kWorkerBacklog = 128;

/// One attached worker, for `popgatectl status`.
struct WorkerStatus {
  std::string name;
  pid_t pid = 0;
  uid_t uid = 0;
  bool leaving = false;
  std::uint64_t waiting = 0;  // ring slots
  RingFigures figures;
};

class Workers {
 public:
  struct Options {
    std::string socket_path;
    mode_t socket_mode = 0600;
    std::optional<gid_t> socket_group{};
    std::uint32_t workers_max = 256;  // at most kWorkersMax
  };
  using HitFunction = std::function<void(const Hit& hit, PopInstant now)>;

  /// Listens. Base and ledger must outlive the result. Workers that come before the first offer wait for it.
  [[nodiscard]] static Result<std::unique_ptr<Workers>> open(EventLoop& loop, Options options, Ledger& ledger,
                                                             HitFunction hit);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// What workers are to map from now on, by read-only descriptors that are duplicated here. Workers that are attached
  /// get both.
  [[nodiscard]] Status offer(int table, std::uint64_t table_bytes, int rules, std::uint64_t rules_bytes);
  /// New rules beside the same table: after a reload.
  [[nodiscard]] Status offer_rules(int rules, std::uint64_t rules_bytes);

  /// Takes everything that waits now in every ring: before the last flush of a daemon that stops.
  void drain_all();
  /// From now on rings are left alone and nobody is accepted: hits wait for the next daemon instead of being lost with
  /// this one.
  void stop_taking();

  /// What the workers of this daemon have checked so far; looks into every ring.
  [[nodiscard]] const RequestTotals& requests();
  [[nodiscard]] std::vector<WorkerStatus> status() const;
  /// Adds per rule what waits in rings and what workers dropped that is not in the ledger yet. With these,
  /// recorded = drained + ring-dropped + waiting + dropped. Reads every ring whole: for people and tests.
  void add_pending(std::map<RuleNumber, std::uint64_t>& waiting, std::map<RuleNumber, std::uint64_t>& dropped) const;
  void visit(const MetricVisitor& visitor) const;

 private:
  struct Figures {
    std::uint64_t attached = 0;
    std::uint64_t refused = 0;
    std::uint64_t strangers_refused = 0;
    std::uint64_t accept_failures = 0;
    RingFigures gone;  // of rings that are no more
  };

  Workers(EventLoop& loop, Options options, Ledger& ledger, HitFunction hit, UnixListener socket);
  void accept_workers();
  void accept_one(FileDescriptor socket);
  [[nodiscard]] bool lets_in(const FileDescriptor& socket);
  void pause_accepting();
  void turn();
  std::uint64_t take(Worker& worker, std::uint64_t hits_max);
  void bury_gone();
  void deliver_offers();
  void note_stranger(const std::optional<SocketPeer>& peer);
  void note_refusal(const std::string& reason);
  [[nodiscard]] RingFigures ring_figures() const;

  EventLoop& loop_;
  Options options_;
  HitFunction hit_;
  UnixListener socket_;
  WorkerOffer offer_;
  Worker::Surroundings around_;
  std::unique_ptr<event, EventDeleter> acceptable_;
  Timer accept_again_;
  Timer poll_;
  bool polling_ = false;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::size_t first_ = 0;  // the worker at which the next turn begins
  HostInstant fold_at_{};
  // Apart, so that strangers cannot crowd out why a worker was refused.
  LogLimiter refusal_log_;
  LogLimiter stranger_log_;
  LogLimiter accept_log_;
  Figures figures_;
  RequestTotals requests_;
};

}  // namespace popgate
