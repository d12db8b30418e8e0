// SPDX-License-Identifier: Apache-2.0
#include "libclient/record/hit_ring.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <random>
#include <thread>

namespace popgate {
namespace {

constexpr std::uint32_t kSlots = kRingSlotsMin;

// The ring's bytes as its format says, mapped once more: what another process sees.
class OtherSide {
 public:
  explicit OtherSide(const HitRing& ring) {
    EXPECT_TRUE(mapping_.map(ring.file_descriptor(), ring_bytes(kSlots), PROT_READ | PROT_WRITE, false));
  }
  [[nodiscard]] RingHeader& header() const { return *reinterpret_cast<RingHeader*>(mapping_.data()); }
  [[nodiscard]] const RingSlot& slot(std::uint64_t position) const {
    return reinterpret_cast<const RingSlot*>(mapping_.data() + ring_slots_offset())[position % kSlots];
  }
  [[nodiscard]] std::uint64_t dropped(RuleNumber rule) const {
    return reinterpret_cast<const std::uint64_t*>(mapping_.data() + ring_dropped_offset(kSlots))[rule];
  }

 private:
  Mapping mapping_;
};

Hit hit_number(std::uint64_t n, RuleNumber rule = 1) {
  return {{n, ~n}, static_cast<std::int64_t>(n) * 3, rule, static_cast<std::uint32_t>(n % 7 + 1)};
}

TEST(HitRing, is_sealed_against_every_change_of_its_size_and_as_long_as_the_format_says) {
  HitRing ring;
  ASSERT_TRUE(ring.create(kSlots, "worker"));
  const int seals = fcntl(ring.file_descriptor(), F_GET_SEALS);
  EXPECT_EQ(seals & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  EXPECT_NE(ftruncate(ring.file_descriptor(), 4096), 0);
  struct stat status {};
  ASSERT_EQ(fstat(ring.file_descriptor(), &status), 0);
  EXPECT_EQ(static_cast<std::size_t>(status.st_size), 4096 + 32 * kSlots + 2 * 8 * std::size_t{1048576});
  // Slots and header have memory, the counts have none: 9 pages of 4 KiB.
  EXPECT_EQ(status.st_blocks * 512, 9 * 4096);
}

TEST(HitRing, header_says_what_it_is_and_whose) {
  HitRing ring;
  ASSERT_TRUE(ring.create(kSlots, "a name that is longer than thirty-one bytes"));
  const OtherSide other(ring);
  EXPECT_EQ(other.header().magic, kRingMagic);
  EXPECT_EQ(other.header().version, 1U);
  EXPECT_EQ(other.header().ring_slots, kSlots);
  EXPECT_EQ(other.header().ring_id, ring.id());
  EXPECT_EQ(other.header().worker_pid, getpid());
  EXPECT_STREQ(other.header().worker_name, "a name that is longer than thir");
  HitRing second;
  ASSERT_TRUE(second.create(kSlots, ""));
  EXPECT_FALSE(second.id() == ring.id());
}

TEST(HitRing, slot_counts_that_are_not_allowed_are_refused) {
  HitRing ring;
  for (const std::uint32_t slots : {0U, 1U, kRingSlotsMin / 2, kRingSlotsMin + 1, kRingSlotsMax * 2}) {
    EXPECT_FALSE(ring.create(slots, "")) << slots;
    EXPECT_EQ(errno, EINVAL);
  }
}

TEST(HitRing, hits_stand_in_the_slots_in_their_order) {
  HitRing ring;
  ASSERT_TRUE(ring.create(kSlots, ""));
  const OtherSide other(ring);
  for (std::uint64_t n = 0; n < 10; ++n) EXPECT_TRUE(ring.record(hit_number(n)));
  EXPECT_EQ(other.header().head.load(), 10U);
  for (std::uint64_t n = 0; n < 10; ++n) {
    EXPECT_EQ(other.slot(n).key_hi, n);
    EXPECT_EQ(other.slot(n).key_lo, ~n);
    EXPECT_EQ(other.slot(n).stamp_us, static_cast<std::int64_t>(n) * 3);
    EXPECT_EQ(other.slot(n).rule, 1U);
    EXPECT_EQ(other.slot(n).cost, n % 7 + 1);
  }
}

TEST(HitRing, full_ring_drops_newest_and_counts_it_per_rule) {
  HitRing ring;
  ASSERT_TRUE(ring.create(kSlots, ""));
  const OtherSide other(ring);
  for (std::uint64_t n = 0; n < kSlots; ++n) EXPECT_TRUE(ring.record(hit_number(n)));
  EXPECT_FALSE(ring.record({{9, 9}, 0, 5, 3}));
  EXPECT_FALSE(ring.record({{9, 9}, 0, 5, 4}));
  EXPECT_FALSE(ring.record({{9, 9}, 0, kRuleNumbersMax - 1, 1}));
  EXPECT_FALSE(ring.record({{9, 9}, 0, kRuleNumbersMax, 1}));  // has no count; must not be written anywhere
  EXPECT_EQ(other.header().head.load(), kSlots);
  EXPECT_EQ(other.slot(0).key_hi, 0U) << "the oldest is still there";
  EXPECT_EQ(other.dropped(5), 7U);
  EXPECT_EQ(other.dropped(kRuleNumbersMax - 1), 1U);
  EXPECT_EQ(other.header().dropped_total.load(), 8U);
}

TEST(HitRing, a_slot_is_used_again_once_the_tail_has_passed_it) {
  HitRing ring;
  ASSERT_TRUE(ring.create(kSlots, ""));
  const OtherSide other(ring);
  for (std::uint64_t n = 0; n < kSlots; ++n) EXPECT_TRUE(ring.record(hit_number(n)));
  EXPECT_FALSE(ring.record(hit_number(kSlots)));
  other.header().tail.store(1);
  EXPECT_TRUE(ring.record(hit_number(kSlots)));
  EXPECT_FALSE(ring.record(hit_number(kSlots + 1)));
  EXPECT_EQ(other.slot(0).key_hi, kSlots);
  EXPECT_EQ(other.slot(1).key_hi, 1U);
}

TEST(HitRing, no_tail_that_the_daemon_may_write_makes_it_write_outside_the_slots) {
  HitRing ring;
  ASSERT_TRUE(ring.create(kSlots, ""));
  const OtherSide other(ring);
  std::mt19937_64 random(7);
  for (int i = 0; i < 200'000; ++i) {
    if (i % 5 == 0) other.header().tail.store(random());
    (void)ring.record(hit_number(static_cast<std::uint64_t>(i), 3));
  }
  // The page behind the slots begins with the counts of rules 0 to 511: only rule 3's may have changed.
  for (RuleNumber rule = 0; rule < 512; ++rule) {
    if (rule == 3) continue;
    EXPECT_EQ(other.dropped(rule), 0U) << rule;
  }
  EXPECT_EQ(other.header().magic, kRingMagic);
  EXPECT_EQ(other.header().ring_slots, kSlots);
}

// One thread records, one takes out by the format's rules: every hit arrives whole, in order, once; the rest is
// counted.
TEST(HitRing, both_sides_as_threads_lose_and_repeat_nothing) {
  HitRing ring;
  ASSERT_TRUE(ring.create(kSlots, ""));
  const OtherSide other(ring);
  constexpr std::uint64_t kHits = 300'000;
  std::atomic<bool> done{false};
  std::uint64_t recorded = 0;
  std::thread worker([&] {
    for (std::uint64_t n = 0; n < kHits; ++n) recorded += ring.record(hit_number(n)) ? 1 : 0;
    done.store(true);
  });
  std::uint64_t taken = 0;
  std::uint64_t last = 0;
  std::uint64_t tail = 0;
  bool whole = true;
  for (bool finished = false; !finished;) {
    finished = done.load();
    for (const std::uint64_t head = other.header().head.load(std::memory_order_acquire); tail < head; ++tail) {
      const RingSlot slot = other.slot(tail);
      whole = whole && slot.key_lo == ~slot.key_hi && slot.stamp_us == static_cast<std::int64_t>(slot.key_hi) * 3 &&
              (taken == 0 || slot.key_hi > last);
      last = slot.key_hi;
      ++taken;
    }
    other.header().tail.store(tail, std::memory_order_release);
  }
  worker.join();
  EXPECT_TRUE(whole);
  EXPECT_EQ(taken, recorded);
  EXPECT_GT(taken, 0U);
}

}  // namespace
}  // namespace popgate
