// SPDX-License-Identifier: Apache-2.0
#include "daemon/collect/ring_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <random>
#include <thread>

#include "libclient/record/hit_ring.h"
#include "tests/libclient/daemon_side.h"

namespace popgate {
namespace {

constexpr std::uint32_t kSlots = kRingSlotsMin;

FileDescriptor copy_of(int fd) { return FileDescriptor(fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

class RingReaderTest : public testing::Test {
 protected:
  RingReaderTest()
      : ledger_(Ledger::in_memory()), rule_(*ledger_->number_for(1)), other_rule_(*ledger_->number_for(2)) {
    EXPECT_TRUE(ring_.create(kSlots, "worker"));
    EXPECT_TRUE(memory_.map(ring_.file_descriptor(), ring_bytes(kSlots), PROT_READ | PROT_WRITE, false));
  }

  [[nodiscard]] std::unique_ptr<RingReader> open() {
    auto reader = RingReader::open(copy_of(ring_.file_descriptor()), *ledger_);
    EXPECT_TRUE(reader.ok()) << reader.error();
    return reader.ok() ? std::move(*reader) : nullptr;
  }
  [[nodiscard]] RingHeader& header() const { return *reinterpret_cast<RingHeader*>(memory_.data()); }
  [[nodiscard]] std::uint64_t* counts(std::size_t offset) const {
    return reinterpret_cast<std::uint64_t*>(memory_.data() + offset);
  }
  [[nodiscard]] std::uint64_t column(RuleNumber rule, LedgerColumn column) const { return ledger_->row(rule)[column]; }
  void record(std::uint64_t count, RuleNumber rule, std::uint32_t cost = 1) {
    for (std::uint64_t i = 0; i < count; ++i) (void)ring_.record({{next_++, 0}, 0, rule, cost});
  }
  static std::vector<Hit> drain_whole(RingReader& reader) {
    std::vector<Hit> all;
    for (reader.look(); reader.waiting() != 0;) {
      const auto hits = reader.drain();
      all.insert(all.end(), hits.begin(), hits.end());
    }
    return all;
  }

  std::unique_ptr<Ledger> ledger_;
  RuleNumber rule_;
  RuleNumber other_rule_;
  HitRing ring_;
  Mapping memory_;
  std::uint64_t next_ = 0;
};

TEST_F(RingReaderTest, hits_come_out_in_order_and_into_the_ledger) {
  const auto reader = open();
  record(500, rule_);
  record(700, other_rule_, 3);
  const std::vector<Hit> hits = drain_whole(*reader);
  ASSERT_EQ(hits.size(), 1024U) << "as many as the ring holds";
  for (std::size_t i = 0; i < hits.size(); ++i) EXPECT_EQ(hits[i].key.hi, i);
  EXPECT_EQ(column(rule_, LedgerColumn::kDrained), 500U);
  EXPECT_EQ(column(other_rule_, LedgerColumn::kDrained), 524U * 3);
  EXPECT_EQ(header().tail.load(), 1024U);
  EXPECT_EQ(reader->figures().drained, 500U + 524 * 3);
}

TEST_F(RingReaderTest, takes_no_more_than_it_is_asked_and_the_ring_wraps_round) {
  const auto reader = open();
  for (int lap = 0; lap < 30; ++lap) {
    record(300, rule_);
    EXPECT_EQ(reader->look(), 300U);
    EXPECT_EQ(reader->drain(100).size(), 100U);
    EXPECT_EQ(reader->waiting(), 200U);
    EXPECT_EQ(reader->drain().size(), 200U);
    EXPECT_TRUE(reader->drain().empty());
  }
  EXPECT_EQ(column(rule_, LedgerColumn::kDrained), 9000U);
}

TEST_F(RingReaderTest, slots_that_cannot_be_are_rejected_and_counted_and_the_rest_is_kept) {
  const auto reader = open();
  record(1, rule_);
  record(1, rule_, 0);
  record(1, rule_, kHitCostMax + 1);
  record(1, kNoRule);
  record(1, other_rule_ + 1);      // no row
  record(1, kRuleNumbersMax + 7);  // no rule can have it
  record(1, UINT32_MAX);
  record(1, rule_, kHitCostMax);
  const std::vector<Hit> hits = drain_whole(*reader);
  ASSERT_EQ(hits.size(), 2U);
  EXPECT_EQ(hits[1].cost, kHitCostMax);
  EXPECT_EQ(reader->figures().slots_rejected, 6U);
  EXPECT_EQ(column(rule_, LedgerColumn::kDrained), 1U + kHitCostMax);
}

TEST_F(RingReaderTest, impossible_positions_make_it_begin_anew_at_the_workers_head) {
  const auto reader = open();
  record(10, rule_);
  for (const std::uint64_t head : {std::uint64_t{kSlots + 1}, UINT64_MAX / 2, std::uint64_t{3}}) {
    header().head.store(head);
    EXPECT_EQ(reader->look(), 0U) << head;
    EXPECT_EQ(header().tail.load(), head);
  }
  EXPECT_EQ(reader->figures().positions_rejected, 3U);
  header().head.store(5);  // goes on from there
  EXPECT_EQ(reader->look(), 2U);
}

TEST_F(RingReaderTest, a_file_that_could_hurt_is_not_mapped) {
  const auto fault = [&](FileDescriptor fd) {
    const auto reader = RingReader::open(std::move(fd), *ledger_);
    return reader.ok() ? std::string("none") : reader.error();
  };
  EXPECT_NE(fault(FileDescriptor(::open("/dev/null", O_RDWR))).find("memfd"), std::string::npos);
  FileDescriptor unsealed(memfd_create("unsealed", MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), static_cast<off_t>(ring_bytes(kSlots))), 0);
  EXPECT_NE(fault(copy_of(unsealed.get())).find("sealed"), std::string::npos);
  ASSERT_EQ(fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  EXPECT_NE(fault(copy_of(unsealed.get())).find("sealed"), std::string::npos);
  ASSERT_EQ(fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_SEAL), 0);
  EXPECT_NE(fault(copy_of(unsealed.get())).find("not a ring"), std::string::npos);
  FileDescriptor short_one(memfd_create("short", MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(short_one.get(), 4096), 0);
  ASSERT_EQ(fcntl(short_one.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  EXPECT_NE(fault(std::move(short_one)).find("4096 bytes"), std::string::npos);

  const auto of_ring = [&] { return fault(copy_of(ring_.file_descriptor())); };
  header().version = 2;
  EXPECT_NE(of_ring().find("version 2"), std::string::npos);
  header().version = kRingVersion;
  header().ring_slots = kSlots + 1;
  EXPECT_NE(of_ring().find("1025 slots"), std::string::npos);
  header().ring_slots = kSlots * 2;
  EXPECT_NE(of_ring().find("bytes"), std::string::npos);
  header().ring_slots = kSlots;
  header().magic = 0;
  EXPECT_NE(of_ring().find("not a ring"), std::string::npos);
}

TEST_F(RingReaderTest, a_ring_whose_id_is_taken_is_refused) {
  const auto reader =
      RingReader::open(copy_of(ring_.file_descriptor()), *ledger_, [&](const RingId& id) { return id == ring_.id(); });
  ASSERT_FALSE(reader.ok());
  EXPECT_NE(reader.error().find("attached already"), std::string::npos);
}

TEST_F(RingReaderTest, the_slot_count_of_the_header_is_believed_only_once) {
  const auto reader = open();
  record(kSlots, rule_);
  EXPECT_EQ(drain_whole(*reader).size(), kSlots);
  header().ring_slots = kRingSlotsMax;  // a reader that used it would leave the slots, and then the mapping
  record(kSlots, rule_);
  EXPECT_EQ(drain_whole(*reader).size(), kSlots);
}

TEST_F(RingReaderTest, a_name_with_control_characters_is_shown_without_them) {
  std::memcpy(header().worker_name, "a\x1b[31mb", 8);
  EXPECT_EQ(open()->worker_name(), "a?[31mb");
  std::memset(header().worker_name, 'x', sizeof header().worker_name);  // no terminating zero
  EXPECT_EQ(open()->worker_name().size(), sizeof header().worker_name);
}

TEST_F(RingReaderTest, drops_are_folded_once_also_by_the_next_reader) {
  auto reader = open();
  record(kSlots + 5, rule_);
  record(2, other_rule_, 10);
  EXPECT_FALSE(reader->fold());
  EXPECT_EQ(column(rule_, LedgerColumn::kRingDropped), 5U);
  EXPECT_EQ(column(other_rule_, LedgerColumn::kRingDropped), 20U);
  EXPECT_FALSE(reader->fold());
  reader.reset();
  reader = open();
  record(1, rule_);
  EXPECT_FALSE(reader->fold());
  EXPECT_EQ(column(rule_, LedgerColumn::kRingDropped), 6U);
  EXPECT_EQ(column(other_rule_, LedgerColumn::kRingDropped), 20U);
}

// Between the ledger's step and the stores into the ring.
TEST_F(RingReaderTest, a_reader_killed_before_its_stores_reached_the_ring_is_continued_by_the_next) {
  auto killed = open();
  record(kSlots + 5, rule_);
  killed->look();
  EXPECT_EQ(killed->drain(100).size(), 100U);
  EXPECT_FALSE(killed->fold());
  header().tail.store(0);
  counts(ring_folded_offset(kSlots))[rule_] = 0;
  // As if killed: no destructor runs before the next reader comes.
  const auto next = open();
  EXPECT_EQ(header().tail.load(), 100U);
  EXPECT_EQ(drain_whole(*next).size(), kSlots - 100U);
  EXPECT_FALSE(next->fold());
  EXPECT_EQ(column(rule_, LedgerColumn::kDrained), kSlots);
  EXPECT_EQ(column(rule_, LedgerColumn::kRingDropped), 5U);
}

TEST_F(RingReaderTest, counts_that_cannot_be_are_rejected) {
  const auto reader = open();
  std::uint64_t* const dropped = counts(ring_dropped_offset(kSlots));
  dropped[rule_] = 10;
  dropped[other_rule_] = kFoldHitsMax + 1;
  dropped[999'999] = 1;  // no row
  header().dropped_total.store(1);
  EXPECT_FALSE(reader->fold());
  EXPECT_EQ(column(rule_, LedgerColumn::kRingDropped), 10U);
  EXPECT_EQ(column(other_rule_, LedgerColumn::kRingDropped), 0U);
  EXPECT_EQ(reader->figures().counts_rejected, 2U);
  dropped[rule_] = 9;  // a count never falls
  header().dropped_total.store(2);
  EXPECT_FALSE(reader->fold());
  EXPECT_EQ(column(rule_, LedgerColumn::kRingDropped), 10U);
  EXPECT_EQ(reader->figures().counts_rejected, 5U);
}

TEST_F(RingReaderTest, a_ring_with_every_count_set_is_folded_in_bounded_pieces) {
  const auto reader = open();
  std::uint64_t* const dropped = counts(ring_dropped_offset(kSlots));
  std::fill_n(dropped, kRuleNumbersMax, 1);
  header().dropped_total.store(1);
  int calls = 1;
  while (reader->fold()) ++calls;
  EXPECT_EQ(calls, static_cast<int>(kRuleNumbersMax / 512 / kFoldPagesMax) + 1);
  EXPECT_EQ(reader->figures().ring_dropped, 2U);
}

TEST_F(RingReaderTest, a_drop_whose_total_was_not_written_any_more_is_found_by_the_last_fold) {
  const auto reader = open();
  EXPECT_FALSE(reader->fold());
  counts(ring_dropped_offset(kSlots))[rule_] = 4;
  EXPECT_FALSE(reader->fold());
  EXPECT_EQ(column(rule_, LedgerColumn::kRingDropped), 0U);
  reader->refold();
  EXPECT_FALSE(reader->fold());
  EXPECT_EQ(column(rule_, LedgerColumn::kRingDropped), 4U);
}

TEST_F(RingReaderTest, checked_requests_are_taken_once_and_from_the_attachment_on) {
  for (int i = 0; i < 5; ++i) ring_.count_request();
  ring_.count_blocked(rule_);
  const auto reader = open();
  RequestTotals totals;
  reader->take_requests(totals);
  EXPECT_EQ(totals.requests, 0U) << "those of the daemon before";
  for (int i = 0; i < 7; ++i) ring_.count_request();
  for (int i = 0; i < 3; ++i) ring_.count_blocked(rule_);
  ring_.count_blocked(other_rule_);
  reader->take_requests(totals);
  reader->take_requests(totals);
  EXPECT_EQ(totals.requests, 7U);
  EXPECT_EQ(totals.would_block, (std::map<RuleNumber, std::uint64_t>{{rule_, 3}, {other_rule_, 1}}));
  EXPECT_EQ(totals.rejected, 0U);
}

TEST_F(RingReaderTest, counts_of_requests_that_fall_or_leap_or_belong_to_no_rule_are_rejected) {
  const auto reader = open();
  RequestTotals totals;
  header().requests.store(UINT64_MAX);
  reader->take_requests(totals);
  header().requests.store(5);
  reader->take_requests(totals);
  EXPECT_EQ(totals.requests, 0U);
  EXPECT_EQ(totals.rejected, 2U);
  header().requests.store(6);
  header().blocked[0].rule.store(UINT32_MAX);
  header().blocked[0].requests.store(3);
  reader->take_requests(totals);
  EXPECT_EQ(totals.requests, 1U);
  EXPECT_TRUE(totals.would_block.empty());
}

TEST_F(RingReaderTest, when_every_place_has_another_rule_a_blocked_request_is_not_counted) {
  const auto reader = open();
  for (RuleNumber rule = 1000; rule < 1000 + kRingFusedMax; ++rule) ring_.count_blocked(rule);
  ring_.count_blocked(rule_);
  RequestTotals totals;
  reader->take_requests(totals);
  EXPECT_TRUE(totals.would_block.empty());
}

TEST_F(RingReaderTest, pending_is_what_waits_and_what_is_not_folded_per_rule) {
  const auto reader = open();
  record(100, rule_, 2);
  reader->look();
  (void)reader->drain(30);
  record(kSlots, other_rule_);
  std::map<RuleNumber, std::uint64_t> waiting;
  std::map<RuleNumber, std::uint64_t> dropped;
  reader->add_pending(waiting, dropped);
  EXPECT_EQ(waiting, (std::map<RuleNumber, std::uint64_t>{{rule_, 140}, {other_rule_, kSlots - 70U}}));
  EXPECT_EQ(dropped, (std::map<RuleNumber, std::uint64_t>{{other_rule_, 70}}));
}

TEST_F(RingReaderTest, a_worker_that_writes_noise_everywhere_while_it_is_drained_adds_only_rejections) {
  const auto reader = open();
  std::atomic<bool> stop{false};
  std::atomic<int> turns{0};
  std::thread worker([&] {
    std::mt19937_64 random(3);
    int tail_at = 50;
    const auto word = [&](std::size_t offset) {
      return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(memory_.data() + offset));
    };
    while (!stop.load()) {
      word(ring_slots_offset() + random() % (kSlots * 4) * 8).store(random(), std::memory_order_relaxed);
      header().head.store(header().tail.load() + random() % (kSlots + 3));
      if (turns.load() >= tail_at) {  // seldom: the reader then skips everything
        header().tail.store(random());
        tail_at = turns.load() + 50;
      }
      word(ring_dropped_offset(kSlots) + random() % 64 * 8).store(random(), std::memory_order_relaxed);
      header().dropped_total.store(random());
    }
  });
  std::uint64_t drained = 0;
  const HostInstant deadline = HostClock::now() + std::chrono::seconds(30);
  const auto seen_enough = [&] {
    const RingFigures& figures = reader->figures();
    return figures.slots_rejected >= 500 && figures.positions_rejected >= 3 && figures.counts_rejected >= 3;
  };
  for (; turns.load() < 3000 || (!seen_enough() && HostClock::now() < deadline); ++turns) {
    if (reader->look() == 0) std::this_thread::yield();
    for (const Hit& hit : reader->drain()) {
      drained += hit.cost;
      EXPECT_TRUE(ledger_->has_row(hit.rule));
      EXPECT_LE(hit.cost, kHitCostMax);
    }
    (void)reader->fold();
  }
  stop.store(true);
  worker.join();
  EXPECT_EQ(column(rule_, LedgerColumn::kDrained) + column(other_rule_, LedgerColumn::kDrained), drained);
  EXPECT_TRUE(seen_enough());
}

RC_GTEST_FIXTURE_PROP(RingReaderTest, drains_exactly_the_slots_that_are_believable, ()) {
  const auto reader = open();
  const auto slots = *rc::gen::container<std::vector<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>>>(
      rc::gen::tuple(rc::gen::oneOf(rc::gen::inRange<std::uint32_t>(0, 4), rc::gen::arbitrary<std::uint32_t>()),
                     rc::gen::oneOf(rc::gen::inRange<std::uint32_t>(0, 3), rc::gen::arbitrary<std::uint32_t>()),
                     rc::gen::arbitrary<std::int64_t>()));
  std::uint64_t expected = 0;
  for (const auto& [rule, cost, stamp] : slots) {
    (void)ring_.record({{1, 1}, stamp, rule, cost});
    if ((rule == rule_ || rule == other_rule_) && cost >= 1 && cost <= kHitCostMax) expected += cost;
  }
  (void)drain_whole(*reader);
  RC_ASSERT(column(rule_, LedgerColumn::kDrained) + column(other_rule_, LedgerColumn::kDrained) == expected);
}

// Both sides as threads of one process, for ThreadSanitizer: what one records the other drains, to the last hit.
TEST_F(RingReaderTest, drains_all_that_a_recording_thread_records) {
  const auto reader = open();
  std::atomic<bool> done{false};
  std::uint64_t recorded = 0;
  std::thread worker([&] {
    for (std::uint64_t n = 0; n < 200'000; ++n) recorded += ring_.record({{n, n}, 0, rule_, 1}) ? 1 : 0;
    done.store(true);
  });
  std::uint64_t last = 0;
  bool in_order = true;
  for (bool finished = false; !finished;) {
    finished = done.load();
    for (const Hit& hit : drain_whole(*reader)) {
      in_order = in_order && hit.key.hi >= last;
      last = hit.key.hi;
    }
    (void)reader->fold();
  }
  worker.join();
  reader->refold();
  while (reader->fold()) {
  }
  EXPECT_TRUE(in_order);
  EXPECT_EQ(column(rule_, LedgerColumn::kDrained), recorded);
  EXPECT_EQ(column(rule_, LedgerColumn::kRingDropped), 200'000 - recorded);
}

}  // namespace
}  // namespace popgate
