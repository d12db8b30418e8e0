// SPDX-License-Identifier: Apache-2.0
#include "daemon/mitigate/entry_table.h"

#include <gtest/gtest.h>

#include "daemon/mitigate/precedence.h"
#include "tests/daemon/mitigate/samples.h"

namespace popgate {
namespace {

Entry entry(Key key, HostInstant until) {
  Mitigation m;
  m.key = key;
  m.until = until;
  return {m, until + seconds(60), false};
}

const Key kA{1, 1};
const Key kB{2, 2};

TEST(EntryTable, what_ends_first_is_due_first_and_nothing_is_due_early) {
  EntryTable table;
  table.put(entry(kA, kHostNow + seconds(2)));
  table.put(entry(kB, kHostNow + seconds(1)));
  EXPECT_FALSE(table.due(kHostNow + seconds(1) - microseconds(1)));
  EXPECT_EQ(table.due(kHostNow + seconds(1))->key, kB);
}

TEST(EntryTable, an_ended_entry_leaves_the_digest_and_is_due_again_when_it_may_go) {
  EntryTable table;
  table.put(entry(kA, kHostNow));
  const EntryId id{kA, EntryKind::kAutomatic};
  EXPECT_EQ(table.digest().entries, 1U);
  table.mark_ended(id);
  EXPECT_EQ(table.digest(), Digest{});
  EXPECT_TRUE(table.find(id)->ended);
  EXPECT_FALSE(table.due(kHostNow + seconds(59)));
  EXPECT_EQ(table.due(kHostNow + seconds(60)), id);
}

TEST(EntryTable, replacing_an_entry_moves_its_deadline_and_keeps_one_in_the_digest) {
  EntryTable table;
  table.put(entry(kA, kHostNow));
  table.put(entry(kA, kHostNow + seconds(9)));
  EXPECT_FALSE(table.due(kHostNow + seconds(8)));
  EXPECT_EQ(table.count(EntryKind::kAutomatic), 1U);
  Digest expected;
  expected.add(kA, entry_hash(table.find({kA, EntryKind::kAutomatic})->mitigation));
  EXPECT_EQ(table.digest(), expected);
  table.erase({kA, EntryKind::kAutomatic});
  EXPECT_EQ(table.digest(), Digest{});
  EXPECT_EQ(table.count(EntryKind::kAutomatic), 0U);
}

TEST(EntryTable, only_ended_entries_make_room_the_one_that_goes_first_first) {
  EntryTable table;
  table.put(entry(kA, kHostNow + seconds(2)));
  table.put(entry(kB, kHostNow + seconds(1)));
  EXPECT_FALSE(table.drop_ended(EntryKind::kAutomatic));
  table.mark_ended({kA, EntryKind::kAutomatic});
  table.mark_ended({kB, EntryKind::kAutomatic});
  EXPECT_FALSE(table.drop_ended(EntryKind::kLift));
  EXPECT_TRUE(table.drop_ended(EntryKind::kAutomatic));
  EXPECT_EQ(table.find({kB, EntryKind::kAutomatic}), nullptr);
  EXPECT_NE(table.find({kA, EntryKind::kAutomatic}), nullptr);
}

TEST(EntryTable, ids_are_those_of_the_buckets_asked_for) {
  EntryTable table;
  table.put(entry({std::uint64_t{3} << 58, 0}, kHostNow));
  table.put(entry({std::uint64_t{4} << 58, 0}, kHostNow));
  EXPECT_EQ(table.ids(kAllBuckets).size(), 2U);
  ASSERT_EQ(table.ids(std::uint64_t{1} << 4).size(), 1U);
  EXPECT_EQ(table.ids(std::uint64_t{1} << 4)[0].key.hi, std::uint64_t{4} << 58);
}

TEST(EntryTable, ids_of_lifts_come_first) {
  EntryTable table;
  for (std::uint64_t i = 0; i < 20; ++i) {
    Entry mixed = entry({i, i}, kHostNow);
    mixed.mitigation.lifted = i % 2 == 1;
    table.put(mixed);
  }
  const auto ids = table.ids(kAllBuckets);
  ASSERT_EQ(ids.size(), 20U);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(ids[i].kind == EntryKind::kLift, i < 10);
}

}  // namespace
}  // namespace popgate
