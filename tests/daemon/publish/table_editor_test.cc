// SPDX-License-Identifier: Apache-2.0
#include "daemon/publish/table_editor.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "daemon/publish/table_writer.h"
#include "tests/daemon/publish/image_memory.h"

namespace popgate {
struct EditorOp {
  std::uint64_t key;     // of 45 keys, 40 at home in bucket 0: more than a neighbourhood takes
  std::uint8_t kind;     // put, put, put, remove, sweep, restart
  std::uint8_t lasting;  // seconds
  RuleNumber rule;
};
}  // namespace popgate

namespace rc {
template <>
struct Arbitrary<popgate::EditorOp> {
  static Gen<popgate::EditorOp> arbitrary() {
    return gen::build<popgate::EditorOp>(gen::set(&popgate::EditorOp::key), gen::set(&popgate::EditorOp::kind),
                                         gen::set(&popgate::EditorOp::lasting), gen::set(&popgate::EditorOp::rule));
  }
};
}  // namespace rc

namespace popgate {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr HostInstant kNow{seconds(500'000)};
constexpr std::size_t kNeighbourhood = kProbeBucketsMax * kEntriesPerBucket;

Enforcement enforcement(const Key& key, RuleNumber rule = 1, HostInstant until = kNow + seconds(60)) {
  return {key, rule, until, false, false};
}

// Number `i` of the keys whose home is bucket 0.
Key at_home(std::uint64_t i) { return {0, (i + 1) << kTagShift}; }

class TableEditorTest : public testing::Test {
 protected:
  TableEditorTest() { EXPECT_EQ(editor_.adopt({}, kNow).inserted, 0U); }
  TableAnswer look_up(const Key& key, HostInstant now = kNow) const { return memory_.reader().look_up(key, now); }

  ImageMemory memory_{64, kNow};
  TableEditor editor_{memory_, 64, 1000};
};

TEST_F(TableEditorTest, full_neighbourhood_refuses_and_evicts_nobody) {
  for (std::uint64_t i = 0; i < kNeighbourhood; ++i) {
    ASSERT_EQ(editor_.put(enforcement(at_home(i)), kNow), PutOutcome::kInserted);
  }
  EXPECT_EQ(editor_.put(enforcement(at_home(kNeighbourhood)), kNow), PutOutcome::kRefused);
  EXPECT_FALSE(look_up(at_home(kNeighbourhood)).live);
  for (std::uint64_t i = 0; i < kNeighbourhood; ++i) EXPECT_TRUE(look_up(at_home(i)).live) << i;
  EXPECT_EQ(editor_.put(enforcement({1, 1 << kTagShift}), kNow), PutOutcome::kInserted)
      << "one bucket on, there is room";
}

TEST(TableEditorBound, flood_that_fills_the_table_leaves_room_for_operators) {
  ImageMemory memory(64, kNow);
  TableEditor editor(memory, 64, 100);
  EXPECT_EQ(editor.adopt({}, kNow).inserted, 0U);
  const auto key = [](std::uint64_t i) { return Key{i, (i + 1) << kTagShift}; };
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_EQ(editor.put(enforcement(key(i)), kNow), PutOutcome::kInserted);
  EXPECT_EQ(editor.put(enforcement(key(100)), kNow), PutOutcome::kRefused);
  for (std::uint64_t i = 100; i < 125; ++i) {  // a quarter more
    Enforcement block = enforcement(key(i));
    block.by_operator = true;
    ASSERT_EQ(editor.put(block, kNow), PutOutcome::kInserted) << i;
    EXPECT_TRUE(memory.reader().look_up(key(i), kNow).live);
  }
  Enforcement one_more = enforcement(key(125));
  one_more.by_operator = true;
  EXPECT_EQ(editor.put(one_more, kNow), PutOutcome::kRefused);
}

TEST_F(TableEditorTest, refused_key_gets_in_when_a_neighbour_goes) {
  for (std::uint64_t i = 0; i <= kNeighbourhood; ++i) (void)editor_.put(enforcement(at_home(i)), kNow);
  EXPECT_TRUE(editor_.remove(at_home(5)));
  EXPECT_EQ(editor_.put(enforcement(at_home(kNeighbourhood)), kNow), PutOutcome::kInserted);
  EXPECT_TRUE(look_up(at_home(kNeighbourhood)).live);
}

TEST_F(TableEditorTest, ended_neighbour_makes_room_before_it_is_swept) {
  for (std::uint64_t i = 0; i < kNeighbourhood; ++i) {
    (void)editor_.put(enforcement(at_home(i), 1, kNow + seconds(i == 7 ? 1 : 60)), kNow);
  }
  const HostInstant later = kNow + seconds(1);
  EXPECT_EQ(editor_.put(enforcement(at_home(kNeighbourhood)), later), PutOutcome::kInserted);
  EXPECT_TRUE(look_up(at_home(kNeighbourhood), later).live);
  EXPECT_FALSE(look_up(at_home(7), later).live);
  EXPECT_EQ(editor_.entries(), kNeighbourhood);
}

TEST(TableEditor, takes_no_more_entries_than_it_is_told) {
  ImageMemory memory(64, kNow);
  TableEditor editor(memory, 64, 3);
  EXPECT_EQ(editor.adopt({}, kNow).kept, 0U);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(editor.put(enforcement(at_home(i)), kNow), PutOutcome::kInserted);
  EXPECT_EQ(editor.put(enforcement(at_home(3)), kNow), PutOutcome::kRefused);
  EXPECT_EQ(editor.put(enforcement(at_home(1), 2), kNow), PutOutcome::kChanged) << "a change needs no room";
}

TEST_F(TableEditorTest, put_tells_what_it_did) {
  EXPECT_EQ(editor_.put(enforcement(at_home(0)), kNow), PutOutcome::kInserted);
  EXPECT_EQ(editor_.put(enforcement(at_home(0)), kNow), PutOutcome::kUnchanged);
  EXPECT_EQ(editor_.put(enforcement(at_home(0), 2), kNow), PutOutcome::kChanged);
  EXPECT_EQ(look_up(at_home(0)).rule, 2U);
  EXPECT_EQ(editor_.put(enforcement(at_home(0), 2, kNow), kNow), PutOutcome::kEnded);
  EXPECT_FALSE(look_up(at_home(0)).live);
  EXPECT_FALSE(editor_.remove(at_home(0)));
}

TEST_F(TableEditorTest, end_beyond_the_longest_mitigation_is_cut) {
  EXPECT_EQ(editor_.put(enforcement(at_home(0), 1, kNow + hours(24 * 60)), kNow), PutOutcome::kInserted);
  EXPECT_EQ(look_up(at_home(0)).remaining, kTableMitigationMax);
}

TEST_F(TableEditorTest, sweep_deletes_what_has_ended_within_one_round) {
  for (std::uint64_t i = 0; i < 20; ++i) {
    (void)editor_.put(enforcement(at_home(i), 1, kNow + seconds(i < 15 ? 1 : 60)), kNow);
  }
  const HostInstant later = kNow + seconds(2);
  std::size_t deleted = 0;
  std::size_t calls = 0;
  for (; calls < 100 && deleted < 15; ++calls) deleted += editor_.sweep(16, later);
  EXPECT_LE(calls, editor_.slots() / 16);
  EXPECT_EQ(editor_.sweep(editor_.slots(), later), 0U);
  EXPECT_EQ(editor_.entries(), 5U);
  for (std::uint64_t i = 0; i < 20; ++i) EXPECT_EQ(look_up(at_home(i), later).live, i >= 15) << i;
}

TEST_F(TableEditorTest, keys_with_one_tag_and_home_each_have_their_entry) {
  const Key one{64, 0xab00};  // both at home in bucket 0, and 56 bits of `lo` equal
  const Key two{128, 0xab01};
  EXPECT_EQ(editor_.put(enforcement(one, 1), kNow), PutOutcome::kInserted);
  EXPECT_EQ(editor_.put(enforcement(two, 2), kNow), PutOutcome::kInserted);
  EXPECT_TRUE(editor_.remove(one));
  EXPECT_EQ(look_up(two).rule, 2U);
}

// --- Against a map
// ----------------------------------------------------------------------------------------------------

Key key_number(std::uint64_t i) { return i < 40 ? at_home(i) : Key{i, i << kTagShift}; }

std::size_t live_in_neighbourhood(const std::map<Key, Enforcement>& held, HostInstant now) {
  return static_cast<std::size_t>(std::count_if(
      held.begin(), held.end(), [now](const auto& one) { return one.first.hi == 0 && one.second.until > now; }));
}

RC_GTEST_PROP(TableEditorProperty, table_answers_as_a_map_would, (const std::vector<EditorOp>& ops)) {
  ImageMemory memory(16, kNow);
  auto editor = std::make_unique<TableEditor>(memory, 16, 1000);
  RC_ASSERT(editor->adopt({}, kNow).deleted == 0);
  const TableReader reader = memory.reader();
  std::map<Key, Enforcement> held;
  HostInstant now = kNow;
  for (std::uint64_t i = 0; i < 31; ++i) {  // so that a short sequence fills the neighbourhood
    held[at_home(i)] = enforcement(at_home(i), 1, now + seconds(20));
    RC_ASSERT(editor->put(held[at_home(i)], now) == PutOutcome::kInserted);
  }
  for (const EditorOp& op : ops) {
    now += milliseconds(200);
    const Key key = key_number(op.key % 45);
    if (op.kind % 6 < 3) {
      const Enforcement wanted = enforcement(key, op.rule % 1000, now + seconds(op.lasting % 60));
      const PutOutcome outcome = editor->put(wanted, now);
      if (outcome == PutOutcome::kRefused) {
        RC_ASSERT(live_in_neighbourhood(held, now) == kNeighbourhood);
        RC_TAG("refused");
        held.erase(key);
      } else {
        held[key] = wanted;
      }
    } else if (op.kind % 6 == 3) {
      editor->remove(key);
      held.erase(key);
    } else if (op.kind % 6 == 4) {
      editor->sweep(op.lasting, now);
    } else {
      std::vector<Enforcement> wanted;
      for (const auto& [_, one] : held) wanted.push_back(one);
      editor = std::make_unique<TableEditor>(memory, 16, 1000);
      const Adoption adoption = editor->adopt(wanted, now);
      RC_ASSERT(adoption.refused.empty());
      RC_ASSERT(adoption.inserted == 0U);  // every live entry is found where it was
    }
    for (std::uint64_t i = 0; i < 45; ++i) {
      const TableAnswer answer = reader.look_up(key_number(i), now);
      const auto it = held.find(key_number(i));
      const bool live = it != held.end() && it->second.until > now;
      if (live) RC_ASSERT(answer.live && answer.rule == it->second.rule);
      // Rounded up by at most a step.
      if (answer.live) RC_ASSERT(it != held.end() && it->second.until + kUntilStep > now);
    }
  }
}

RC_GTEST_PROP(TableEditorProperty, adoption_of_any_bytes_gives_what_is_wanted,
              (const std::vector<std::uint64_t>& words)) {
  ImageMemory memory(8, kNow);
  for (std::size_t i = 0; !words.empty() && i < 8 * kWordsPerBucket; ++i) memory.store(i, words[i % words.size()]);
  TableEditor editor(memory, 8, 100);
  std::vector<Enforcement> wanted;
  for (std::uint64_t i = 0; i < 12; ++i) wanted.push_back(enforcement(at_home(i), 100 + static_cast<RuleNumber>(i)));
  // One that the bytes may hold already.
  if (!words.empty()) wanted.push_back(enforcement({0, words[0]}, 500));
  RC_ASSERT(editor.adopt(wanted, kNow).refused.empty());
  const TableReader reader = memory.reader();
  std::size_t live_values = 0;
  for (std::size_t slot = 0; slot < 8 * kEntriesPerBucket; ++slot) {
    live_values += unpack_value_word(memory.load(slot * kWordsPerEntry + 1)).until != 0 ? 1 : 0;
  }
  RC_ASSERT(live_values == editor.entries());
  for (const Enforcement& one : wanted) RC_ASSERT(reader.look_up(one.key, kNow).live);
}

TEST(TableEditor, configured_number_of_random_keys_finds_room) {
  constexpr std::size_t kEntries = 65'536;
  const std::uint32_t buckets = bucket_count_for(kEntries);
  ImageMemory memory(buckets, kNow);
  TableEditor editor(memory, buckets, kEntries);
  EXPECT_EQ(editor.adopt({}, kNow).kept, 0U);
  std::mt19937_64 random(20260101);
  std::size_t refused = 0;
  for (std::size_t i = 0; i < kEntries; ++i) {
    refused += editor.put(enforcement({random(), random()}), kNow) == PutOutcome::kRefused ? 1 : 0;
  }
  // Half full: 8 buckets in a row hold 16 entries on average, and a key is refused only when they hold all 32. For
  // Poisson(16) that is 2e-4; that the run begins at the key's home and is full bucket by bucket makes it rarer still.
  EXPECT_LE(refused, kEntries / 5000);
}

}  // namespace
}  // namespace popgate
