// SPDX-License-Identifier: Apache-2.0
#include "libclient/record/hit_ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <cerrno>
#include <new>

namespace popgate {
namespace {

#ifndef MFD_NOEXEC_SEAL
constexpr unsigned MFD_NOEXEC_SEAL = 8U;  // Linux 6.3; glibc 2.36 does not name it yet
#endif

int create_memfd() noexcept {
  constexpr unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int fd = memfd_create("popgate-ring", flags | MFD_NOEXEC_SEAL);
  // Older kernels do not know the flag; hosts with vm.memfd_noexec=2 insist on it.
  return fd >= 0 || errno != EINVAL ? fd : memfd_create("popgate-ring", flags);
}

// Header and slots get their memory now: later there is nobody who could be told that there is none.
bool allocate(int fd, std::uint32_t slots) noexcept {
  if (ftruncate(fd, static_cast<off_t>(ring_bytes(slots))) != 0) return false;
  int result = 0;
  do {
    result = fallocate(fd, 0, 0, static_cast<off_t>(ring_dropped_offset(slots)));
  } while (result != 0 && errno == EINTR);
  return result == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

bool random_id(RingId& id) noexcept { return getrandom(&id, sizeof id, GRND_NONBLOCK) == sizeof id; }

}  // namespace

bool HitRing::create(std::uint32_t slots, std::string_view worker_name) noexcept {
  if (!ring_slots_allowed(slots)) {
    errno = EINVAL;
    return false;
  }
  fd_.reset(create_memfd());
  if (!fd_.is_open() || !allocate(fd_.get(), slots) || !random_id(id_)) return false;
  if (!mapping_.map(fd_.get(), ring_bytes(slots), PROT_READ | PROT_WRITE, false)) return false;
  // Faults the slots in now. Where the kernel does not know the advice (before 5.14) the first lap faults them in.
  (void)madvise(mapping_.data(), ring_dropped_offset(slots), MADV_POPULATE_WRITE);
  slots_ = slots;
  head_ = tail_seen_ = 0;
  auto* const ring = new (mapping_.data()) RingHeader{};  // the memory is zero; this begins the atomics' lives
  ring->magic = kRingMagic;
  ring->version = kRingVersion;
  ring->ring_slots = slots;
  ring->ring_id = id_;
  ring->worker_pid = getpid();
  worker_name.copy(ring->worker_name, sizeof ring->worker_name - 1);
  return true;
}

// The rule's count moves before the total: who sees the total sees the count. Plain read-modify-write, because the
// worker is the only writer; atomic, because the daemon reads at any time.
bool HitRing::drop(const Hit& hit) noexcept {
  if (hit.rule >= kRuleNumbersMax) return false;
  auto* const dropped = reinterpret_cast<std::uint64_t*>(mapping_.data() + ring_dropped_offset(slots_));
  const std::atomic_ref<std::uint64_t> of_rule(dropped[hit.rule]);
  of_rule.store(of_rule.load(std::memory_order_relaxed) + hit.cost, std::memory_order_relaxed);
  std::atomic<std::uint64_t>& total = header()->dropped_total;
  total.store(total.load(std::memory_order_relaxed) + hit.cost, std::memory_order_release);  // pairs with the reader
  return false;
}

void HitRing::count_blocked(RuleNumber rule) noexcept {
  for (std::uint32_t i = 0; i < kRingFusedMax; ++i) {
    RingBlocked& place = header()->blocked[(rule + i) % kRingFusedMax];
    const std::uint32_t owner = place.rule.load(std::memory_order_relaxed);
    if (owner != 0 && owner != rule) continue;
    raise(place.requests);
    if (owner == 0)
      place.rule.store(rule, std::memory_order_release);  // pairs with the daemon's: the count comes first
    return;
  }
}

void HitRing::close() noexcept {
  mapping_.reset();
  fd_.reset();
  slots_ = 0;
}

}  // namespace popgate
