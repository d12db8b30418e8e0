// SPDX-License-Identifier: Apache-2.0
#include "daemon/collect/workers.h"

#include <event2/event.h>
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "daemon/socket_access.h"

namespace popgate {
namespace {

Status duplicate(int from, FileDescriptor& to) {
  to.reset(fcntl(from, F_DUPFD_CLOEXEC, 0));
  return to.is_open() ? Status() : Error{std::string("worker offer: cannot duplicate: ") + std::strerror(errno)};
}

void add(RingFigures& sum, const RingFigures& figures) {
  sum.drained += figures.drained;
  sum.ring_dropped += figures.ring_dropped;
  sum.slots_rejected += figures.slots_rejected;
  sum.positions_rejected += figures.positions_rejected;
  sum.counts_rejected += figures.counts_rejected;
}

}  // namespace

Result<std::unique_ptr<Workers>> Workers::open(EventLoop& loop, Options options, Ledger& ledger, HitFunction hit) {
  POPGATE_ASSERT(options.workers_max <= kWorkersMax);
  Result<UnixListener> socket = UnixListener::listen(
      options.socket_path,
      {"worker socket", SOCK_SEQPACKET, options.socket_mode, kWorkerBacklog, options.socket_group});
  if (!socket) return Error{socket.error()};
  return std::unique_ptr<Workers>(new Workers(loop, std::move(options), ledger, std::move(hit), std::move(*socket)));
}

Workers::Workers(EventLoop& loop, Options options, Ledger& ledger, HitFunction hit, UnixListener socket)
    : loop_(loop),
      options_(std::move(options)),
      hit_(std::move(hit)),
      socket_(std::move(socket)),
      accept_again_(loop, [this] { event_add(acceptable_.get(), nullptr); }),
      poll_(loop, [this] { turn(); }) {
  around_.base = loop_.base();
  around_.ledger = &ledger;
  around_.offer = &offer_;
  around_.ring_is_attached = [this](const RingId& id) {
    return std::any_of(workers_.begin(), workers_.end(),
                       [&](const auto& worker) { return worker->ring() != nullptr && worker->ring()->id() == id; });
  };
  around_.refused = [this](const std::string& reason) { note_refusal(reason); };
  around_.attached = [this] { ++figures_.attached; };
  const auto accept = [](evutil_socket_t, short, void* self) { static_cast<Workers*>(self)->accept_workers(); };
  acceptable_.reset(event_new(loop_.base(), socket_.descriptor(), EV_READ | EV_PERSIST, accept, this));
  event_add(acceptable_.get(), nullptr);
}

Workers::~Workers() = default;

void Workers::accept_workers() {
  for (unsigned i = 0; i < kAcceptsPerTurn; ++i) {
    FileDescriptor socket(accept4(socket_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) pause_accepting();
      return;
    }
    accept_one(std::move(socket));
  }
}

// The listening socket stays readable: without a pause the loop would do nothing but fail to accept.
void Workers::pause_accepting() {
  const int error = errno;
  ++figures_.accept_failures;
  if (accept_log_.allow(HostClock::now())) {
    spdlog::warn("worker socket {}: cannot accept: {}; trying again in {} ms{}", options_.socket_path,
                 std::strerror(error), kAcceptPause.count(), accept_log_.withheld_text());
  }
  event_del(acceptable_.get());
  accept_again_.start_once(kAcceptPause);
}

bool Workers::lets_in(const FileDescriptor& socket) {
  const std::optional<SocketPeer> peer = socket_peer(socket.get());
  if (peer && may_connect(*peer, {options_.socket_mode, options_.socket_group}, SocketOwner::this_process()))
    return true;
  note_stranger(peer);
  return false;
}

void Workers::note_stranger(const std::optional<SocketPeer>& peer) {
  ++figures_.strangers_refused;
  if (!stranger_log_.allow(HostClock::now())) return;
  spdlog::warn(
      "worker socket {}: found {}, allowed: root, this daemon's user and whom worker_socket_group and "
      "worker_socket_mode let in{}",
      options_.socket_path, peer ? peer->text() : "a process that the kernel does not name",
      stranger_log_.withheld_text());
}

void Workers::accept_one(FileDescriptor socket) {
  if (!lets_in(socket)) return;
  if (workers_.size() >= options_.workers_max) bury_gone();
  const bool room = workers_.size() < options_.workers_max;
  workers_.push_back(std::make_unique<Worker>(std::move(socket), HostClock::now(), around_));
  if (!room) {
    workers_.back()->refuse("workers_max (" + std::to_string(options_.workers_max) + ") workers are attached");
    workers_.pop_back();
    return;
  }
  if (!polling_) poll_.start_once(kPollBusy);
  polling_ = true;
}

Status Workers::offer(int table, std::uint64_t table_bytes, int rules, std::uint64_t rules_bytes) {
  FileDescriptor copy;
  if (Status status = duplicate(table, copy); !status) return status;
  FileDescriptor rules_copy;
  if (Status status = duplicate(rules, rules_copy); !status) return status;
  offer_.table = std::move(copy);
  offer_.table_bytes = table_bytes;
  ++offer_.table_generation;
  offer_.rules = std::move(rules_copy);
  offer_.rules_bytes = rules_bytes;
  ++offer_.rules_generation;
  deliver_offers();
  return {};
}

Status Workers::offer_rules(int rules, std::uint64_t rules_bytes) {
  POPGATE_ASSERT(offer_.table_generation != 0);
  FileDescriptor copy;
  if (Status status = duplicate(rules, copy); !status) return status;
  offer_.rules = std::move(copy);
  offer_.rules_bytes = rules_bytes;
  ++offer_.rules_generation;
  deliver_offers();
  return {};
}

void Workers::deliver_offers() {
  for (const auto& worker : workers_) worker->deliver_offer();
}

// A turn that runs out of budget ends at a ring, and the next one begins there.
void Workers::stop_taking() {
  poll_.stop();
  polling_ = true;  // nothing may start it again
  event_del(acceptable_.get());
  accept_again_.stop();
}

void Workers::turn() {
  std::uint64_t budget = kHitsPerTurn;
  bool more = false;
  std::size_t looked = 0;
  for (; looked < workers_.size() && budget != 0; ++looked) {
    Worker& worker = *workers_[(first_ + looked) % workers_.size()];
    const std::uint64_t waits = worker.look();
    const std::uint64_t taken = take(worker, std::min({waits, budget, kHitsPerRingTurn}));
    more = more || waits > taken;
    budget -= taken;
  }
  more = more || looked < workers_.size();
  first_ += looked < workers_.size() ? looked : 1;
  bury_gone();
  polling_ = !workers_.empty();
  if (!polling_) return;
  const milliseconds interval = budget < kHitsPerTurn ? kPollBusy : kPollIdle;
  poll_.start_once(more ? microseconds(0) : interval);
}

// The clock is read after look() has read the head: every hit up to it was stamped before.
std::uint64_t Workers::take(Worker& worker, std::uint64_t hits_max) {
  if (hits_max == 0) return 0;
  RingReader& ring = *worker.ring();
  const PopInstant now = PopClock::now();
  const std::uint64_t before = ring.waiting();
  while (ring.waiting() != 0 && before - ring.waiting() < hits_max) {
    for (const Hit& hit : ring.drain(hits_max - (before - ring.waiting()))) hit_(hit, now);
  }
  return before - ring.waiting();
}

void Workers::bury_gone() {
  const HostInstant now = HostClock::now();
  const bool fold = now >= fold_at_;
  if (fold) fold_at_ = now + kFoldPeriod;
  for (const auto& worker : workers_) {
    worker->expire_greeting(now);
    if (fold && worker->state() == Worker::State::kAttached) worker->ring()->fold();
    worker->finish_leaving();
    if (worker->state() == Worker::State::kGone && worker->ring() != nullptr) {
      worker->ring()->take_requests(requests_);
      add(figures_.gone, worker->ring()->figures());
    }
  }
  std::erase_if(workers_, [](const auto& worker) { return worker->state() == Worker::State::kGone; });
}

const RequestTotals& Workers::requests() {
  for (const auto& worker : workers_) {
    if (worker->ring() != nullptr) worker->ring()->take_requests(requests_);
  }
  return requests_;
}

void Workers::drain_all() {
  for (const auto& worker : workers_) {
    take(*worker, worker->look());
    if (worker->ring() == nullptr) continue;
    worker->ring()->refold();
    while (worker->ring()->fold()) {
    }
  }
}

void Workers::note_refusal(const std::string& reason) {
  ++figures_.refused;
  if (!refusal_log_.allow(HostClock::now())) return;
  spdlog::warn("worker socket {}: a worker was refused: {}{}", options_.socket_path, reason,
               refusal_log_.withheld_text());
}

std::vector<WorkerStatus> Workers::status() const {
  std::vector<WorkerStatus> all;
  for (const auto& worker : workers_) {
    const RingReader* const ring = worker->ring();
    if (ring == nullptr) continue;
    all.push_back({ring->worker_name(), worker->credentials().pid, worker->credentials().uid,
                   worker->state() == Worker::State::kLeaving, ring->waiting(), ring->figures()});
  }
  return all;
}

void Workers::add_pending(std::map<RuleNumber, std::uint64_t>& waiting,
                          std::map<RuleNumber, std::uint64_t>& dropped) const {
  for (const auto& worker : workers_) {
    if (worker->ring() != nullptr) worker->ring()->add_pending(waiting, dropped);
  }
}

RingFigures Workers::ring_figures() const {
  RingFigures sum = figures_.gone;
  for (const auto& worker : workers_) {
    if (worker->ring() != nullptr) add(sum, worker->ring()->figures());
  }
  return sum;
}

void Workers::visit(const MetricVisitor& visitor) const {
  const auto counter = [&](std::string_view name, std::string_view unit, std::string_view meaning,
                           std::uint64_t value) {
    visitor({name, unit, meaning, static_cast<double>(value), true, {}, {}});
  };
  const auto state = [&](std::string_view name, std::string_view unit, std::string_view meaning, std::uint64_t value) {
    visitor({name, unit, meaning, static_cast<double>(value), false, {}, {}});
  };
  std::uint64_t waiting = 0;
  for (const auto& worker : workers_) waiting += worker->ring() != nullptr ? worker->ring()->waiting() : 0;
  const RingFigures rings = ring_figures();
  state("popgate_collect_workers", "workers", "Connections of workers.", workers_.size());
  state("popgate_collect_ring_slots_waiting", "slots", "Slots that the last turn saw and left in the rings.", waiting);
  counter("popgate_collect_requests_total", "requests", "Requests that workers have checked.", requests_.requests);
  counter("popgate_collect_requests_rejected_total", "counts", "Counts of checked requests that were garbage.",
          requests_.rejected);
  counter("popgate_collect_workers_attached", "workers", "Rings taken over since start.", figures_.attached);
  counter("popgate_collect_workers_refused", "workers", "Workers refused: no room, a foreign version, a faulty ring.",
          figures_.refused);
  counter("popgate_collect_strangers_refused", "connections",
          "Connections to the worker socket by users whom its mode and group do not let in.",
          figures_.strangers_refused);
  counter("popgate_collect_accept_failures", "times", "Pauses because the process ran out of descriptors.",
          figures_.accept_failures);
  counter("popgate_collect_hits_drained", "hits", "Hits taken out of rings.", rings.drained);
  counter("popgate_collect_hits_ring_dropped", "hits", "Hits that workers dropped because their ring was full.",
          rings.ring_dropped);
  counter("popgate_collect_slots_rejected", "slots", "Ring slots with an unknown rule or an impossible cost.",
          rings.slots_rejected);
  counter("popgate_collect_positions_rejected", "times", "Impossible ring positions: the reader began anew.",
          rings.positions_rejected);
  counter("popgate_collect_counts_rejected", "counts", "Impossible counts of dropped hits in rings.",
          rings.counts_rejected);
}

}  // namespace popgate
