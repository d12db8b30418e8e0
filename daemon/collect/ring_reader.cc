// SPDX-License-Identifier: Apache-2.0
#include "daemon/collect/ring_reader.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace popgate {
namespace {

constexpr std::uint32_t kRulesPerPage = 4096 / sizeof(std::uint64_t);
constexpr std::uint64_t kNeverFolded = UINT64_MAX;

// The worker may write at any time: every word is read once, as one word.
template <typename T>
T load(const T& word) {
  return std::atomic_ref<const T>(word).load(std::memory_order_relaxed);
}

// Only a memfd on tmpfs that can never shrink cannot raise SIGBUS under us.
std::string fault_of_file(int fd) {
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0) return "not a memfd";
  constexpr int needed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if ((seals & needed) != needed) return "not sealed against shrinking, growing and further seals";
  struct statfs filesystem {};
  if (fstatfs(fd, &filesystem) != 0 || filesystem.f_type != TMPFS_MAGIC) return "not on tmpfs";
  return {};
}

std::string fault_of_header(const RingHeader& header, std::size_t file_bytes, std::uint32_t& slots) {
  if (load(header.magic) != kRingMagic) return "not a ring";
  if (const std::uint32_t version = load(header.version); version != kRingVersion) {
    return "version " + std::to_string(version) + ", this daemon reads version " + std::to_string(kRingVersion);
  }
  slots = load(header.ring_slots);
  if (!ring_slots_allowed(slots)) return std::to_string(slots) + " slots, allowed: a power of two from 1024 to 1048576";
  if (file_bytes != ring_bytes(slots)) {
    return std::to_string(file_bytes) + " bytes, allowed for " + std::to_string(slots) +
           " slots: " + std::to_string(ring_bytes(slots));
  }
  return {};
}

// A count that falls, or leaps, was not written by our library: it begins anew from what it is.
std::uint64_t risen(std::uint64_t count, std::uint64_t& seen, RequestTotals& totals) {
  const std::uint64_t before = std::exchange(seen, count);
  if (count >= before && count - before <= kRequestsRiseMax) return count - before;
  ++totals.rejected;
  return 0;
}

}  // namespace

Result<Mapping> RingReader::map(int ring, Shape& shape) {
  if (const std::string fault = fault_of_file(ring); !fault.empty()) return Error{"ring: " + fault};
  struct stat status {};
  if (fstat(ring, &status) != 0) return Error{std::string("ring: fstat: ") + std::strerror(errno)};
  const auto file_bytes = static_cast<std::size_t>(status.st_size);
  if (file_bytes < ring_bytes(kRingSlotsMin) || file_bytes > ring_bytes(kRingSlotsMax)) {
    return Error{"ring: " + std::to_string(file_bytes) + " bytes, allowed: " +
                 std::to_string(ring_bytes(kRingSlotsMin)) + " to " + std::to_string(ring_bytes(kRingSlotsMax))};
  }
  Mapping mapping;
  if (!mapping.map(ring, file_bytes, PROT_READ | PROT_WRITE, false)) {
    return Error{std::string("ring: mmap: ") + std::strerror(errno)};
  }
  const auto& header = *reinterpret_cast<const RingHeader*>(mapping.data());
  if (const std::string fault = fault_of_header(header, file_bytes, shape.slots); !fault.empty()) {
    return Error{"ring: " + fault};
  }
  shape.id = {load(header.ring_id.hi), load(header.ring_id.lo)};
  return mapping;
}

Result<std::unique_ptr<RingReader>> RingReader::open(FileDescriptor ring, Ledger& ledger,
                                                     const std::function<bool(const RingId&)>& taken) {
  Shape shape;
  Result<Mapping> mapping = map(ring.get(), shape);
  if (!mapping) return Error{mapping.error()};
  if (taken && taken(shape.id)) return Error{"ring: attached already"};
  return std::unique_ptr<RingReader>(new RingReader(std::move(ring), std::move(*mapping), shape, ledger));
}

RingReader::RingReader(FileDescriptor ring, Mapping mapping, const Shape& shape, Ledger& ledger)
    : fd_(std::move(ring)),
      mapping_(std::move(mapping)),
      slots_(shape.slots),
      id_(shape.id),
      ledger_(ledger),
      dropped_seen_(kNeverFolded) {
  char name[sizeof header()->worker_name];
  std::memcpy(name, header()->worker_name, sizeof name);
  worker_name_.assign(name, strnlen(name, sizeof name));
  for (char& c : worker_name_) {
    if (c < ' ' || c > '~') c = '?';  // it goes to logs and terminals
  }
  sums_.reserve(kDrainBatchMax);
  resume();
}

RingReader::~RingReader() { ledger_.forget(account_); }

// What the last daemon took from this ring and may not have lived to store into it.
void RingReader::resume() {
  RingStep step;
  step.tail = header()->tail.load(std::memory_order_relaxed);
  account_ = ledger_.account_for(id_, step);
  tail_ = head_ = step.tail;
  // What was checked under the daemon before is not this one's.
  requests_seen_ = header()->requests.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < kRingFusedMax; ++i) {
    blocked_seen_[i] = header()->blocked[i].requests.load(std::memory_order_relaxed);
  }
  if (step.fold_rule != kNoRule && step.fold_rule < kRuleNumbersMax) {
    counts(ring_folded_offset(slots_))[step.fold_rule] = step.fold_count;
  }
  header()->tail.store(tail_, std::memory_order_release);
}

void RingReader::take_requests(RequestTotals& totals) {
  totals.requests += risen(header()->requests.load(std::memory_order_relaxed), requests_seen_, totals);
  for (std::uint32_t i = 0; i < kRingFusedMax; ++i) {
    const RingBlocked& place = header()->blocked[i];
    const std::uint32_t rule = place.rule.load(std::memory_order_acquire);  // pairs with the worker's release
    if (rule == 0) continue;
    const std::uint64_t blocked = risen(place.requests.load(std::memory_order_relaxed), blocked_seen_[i], totals);
    if (blocked != 0 && ledger_.has_row(rule)) totals.would_block[rule] += blocked;
  }
}

std::uint64_t RingReader::look() {
  head_ = header()->head.load(std::memory_order_acquire);  // pairs with the worker's release: slots before it are whole
  if (head_ - tail_ > slots_) {
    ++figures_.positions_rejected;
    skip_to(head_);
  }
  return head_ - tail_;
}

void RingReader::skip_to(std::uint64_t head) {
  tail_ = head;
  ledger_.drain(account_, tail_, {});
  header()->tail.store(tail_, std::memory_order_release);
}

std::span<const Hit> RingReader::drain(std::uint64_t slots_max) {
  const std::size_t taken = std::min({head_ - tail_, slots_max, std::uint64_t{kDrainBatchMax}});
  if (taken == 0) return {};
  std::size_t good = 0;
  sums_.clear();
  sum_index_.fill(0);
  for (std::size_t i = 0; i < taken; ++i) {
    const Hit hit = copy_slot(tail_ + i);
    if (!believable(hit)) {
      ++figures_.slots_rejected;
      continue;
    }
    add_up(hit);
    hits_[good++] = hit;
  }
  tail_ += taken;
  ledger_.drain(account_, tail_, sums_);
  header()->tail.store(tail_, std::memory_order_release);  // pairs with the worker's acquire: it may overwrite now
  for (const RuleHits& of_rule : sums_) figures_.drained += of_rule.hits;
  return {hits_.data(), good};
}

Hit RingReader::copy_slot(std::uint64_t position) const {
  const RingSlot& slot =
      reinterpret_cast<const RingSlot*>(mapping_.data() + ring_slots_offset())[position & (slots_ - 1)];
  Hit hit;
  hit.key = {load(slot.key_hi), load(slot.key_lo)};
  hit.stamp_us = load(slot.stamp_us);
  hit.rule = load(slot.rule);
  hit.cost = load(slot.cost);
  return hit;
}

// The stamp is judged by whoever knows the rule's window: a hit that waited too long is a hit, and accounted for.
bool RingReader::believable(const Hit& hit) const {
  return hit.cost >= 1 && hit.cost <= kHitCostMax && ledger_.has_row(hit.rule);
}

void RingReader::add_up(const Hit& hit) {
  constexpr std::size_t mask = std::tuple_size_v<decltype(sum_index_)> - 1;
  std::size_t i = (hit.rule * 0x9e3779b1U >> 16) & mask;
  while (sum_index_[i] != 0 && sums_[sum_index_[i] - 1U].rule != hit.rule) i = (i + 1) & mask;
  if (sum_index_[i] == 0) {
    sums_.push_back({hit.rule, 0});
    sum_index_[i] = static_cast<std::uint16_t>(sums_.size());
  }
  sums_[sum_index_[i] - 1U].hits += hit.cost;
}

bool RingReader::fold() {
  if (fold_next_ == 0) {
    dropped_now_ = header()->dropped_total.load(std::memory_order_acquire);
    if (dropped_now_ == dropped_seen_) return false;
  }
  for (unsigned page = 0; page < kFoldPagesMax; ++page) {
    const std::uint32_t rule = next_dropped_page(fold_next_);
    if (rule >= kRuleNumbersMax) {
      dropped_seen_ = dropped_now_;
      fold_next_ = 0;
      return false;
    }
    fold_page(rule);
    fold_next_ = rule + kRulesPerPage;
  }
  return true;
}

void RingReader::refold() {
  dropped_seen_ = kNeverFolded;
  fold_next_ = 0;
}

// Reading a page that was never written would give it memory: the kernel is asked which were.
std::uint32_t RingReader::next_dropped_page(std::uint32_t rule) const {
  if (rule >= kRuleNumbersMax) return kRuleNumbersMax;
  const auto base = static_cast<off_t>(ring_dropped_offset(slots_));
  const off_t from = base + static_cast<off_t>(rule) * static_cast<off_t>(sizeof(std::uint64_t));
  const off_t data = lseek(fd_.get(), from, SEEK_DATA);
  if (data < 0) return errno == ENXIO ? kRuleNumbersMax : rule;
  const auto found = static_cast<std::uint64_t>(std::max(data, from) - base) / sizeof(std::uint64_t);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(found / kRulesPerPage * kRulesPerPage, kRuleNumbersMax));
}

void RingReader::fold_page(std::uint32_t first_rule) {
  for (std::uint32_t rule = first_rule; rule < first_rule + kRulesPerPage; ++rule) {
    if (const std::uint64_t count = dropped_of(rule); count != 0) fold_rule(rule, count);
  }
}

void RingReader::fold_rule(RuleNumber rule, std::uint64_t count) {
  const std::uint64_t folded = folded_of(rule);
  if (count == folded) return;
  if (count < folded || count - folded > kFoldHitsMax || !ledger_.has_row(rule)) {
    ++figures_.counts_rejected;
    return;
  }
  ledger_.fold(account_, rule, count - folded, count);
  counts(ring_folded_offset(slots_))[rule] = count;
  figures_.ring_dropped += count - folded;
}

std::uint64_t RingReader::dropped_of(RuleNumber rule) const { return load(counts(ring_dropped_offset(slots_))[rule]); }
std::uint64_t RingReader::folded_of(RuleNumber rule) const { return load(counts(ring_folded_offset(slots_))[rule]); }

void RingReader::add_pending(std::map<RuleNumber, std::uint64_t>& waiting,
                             std::map<RuleNumber, std::uint64_t>& dropped) const {
  const std::uint64_t head = header()->head.load(std::memory_order_acquire);
  for (std::uint64_t position = tail_; head - tail_ <= slots_ && position < head; ++position) {
    if (const Hit hit = copy_slot(position); believable(hit)) waiting[hit.rule] += hit.cost;
  }
  for (std::uint32_t page = next_dropped_page(0); page < kRuleNumbersMax;
       page = next_dropped_page(page + kRulesPerPage)) {
    for (RuleNumber rule = page; rule < page + kRulesPerPage; ++rule) {
      const std::uint64_t count = dropped_of(rule);
      if (count > folded_of(rule) && ledger_.has_row(rule)) dropped[rule] += count - folded_of(rule);
    }
  }
}

}  // namespace popgate
