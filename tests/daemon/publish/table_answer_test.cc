// SPDX-License-Identifier: Apache-2.0
#include "libclient/check/table_answer.h"

#include <gtest/gtest.h>

#include <functional>

#include "daemon/publish/table_editor.h"
#include "tests/daemon/publish/image_memory.h"

namespace popgate {
namespace {

using std::chrono::seconds;

constexpr HostInstant kNow{seconds(500'000)};
constexpr std::uint32_t kBuckets = 64;
constexpr Key kClient{7, 7};
constexpr RuleNumber kRule = 3;

// One rule's word, or none; the writer does something just before the reader's first look at it.
struct ModelBrakes {
  RuleNumber& off;
  std::function<void()> before_the_first_look;
  mutable bool looked = false;

  [[nodiscard]] bool all_off() const {
    if (!looked && before_the_first_look) before_the_first_look();
    looked = true;
    return false;
  }
  [[nodiscard]] std::uint32_t count() const { return 1; }
  [[nodiscard]] std::uint32_t slot(std::uint32_t) const { return off; }
};

class TableAnswerTest : public testing::Test {
 protected:
  TableAnswerTest() {
    EXPECT_EQ(editor_.adopt({}, kNow).inserted, 0U);
    EXPECT_EQ(editor_.put({kClient, kRule, kNow + seconds(60), false, false}, kNow), PutOutcome::kInserted);
  }
  std::optional<EnforcedEntry> look_up(std::function<void()> meanwhile = {}) {
    const ModelBrakes brakes{off_, std::move(meanwhile)};
    return search_enforced(memory_, brakes, kBuckets, kClient, [] { return std::optional(kNow); });
  }

  ImageMemory memory_{kBuckets, kNow};
  TableEditor editor_{memory_, kBuckets, 100};
  RuleNumber off_ = 0;
};

TEST_F(TableAnswerTest, entry_and_brakes_are_one_answer) {
  ASSERT_TRUE(look_up());
  EXPECT_FALSE(look_up()->turned_off);
  EXPECT_EQ(look_up()->entry.value.rule, kRule);
  EXPECT_GT(look_up()->entry.remaining, seconds(59));
  off_ = kRule;
  EXPECT_TRUE(look_up()->turned_off);
}

// A rule that is off is deleted: its entries go, and then its word. A reader that had found the entry before, and looks
// at the words after, must not answer that the client is blocked.
TEST_F(TableAnswerTest, entry_of_a_rule_that_was_off_to_its_end_blocks_nobody) {
  off_ = kRule;
  const auto answer = look_up([this] {
    EXPECT_TRUE(editor_.remove(kClient));
    off_ = 0;
  });
  EXPECT_FALSE(answer);
}

TEST_F(TableAnswerTest, entry_that_is_renewed_meanwhile_is_found_with_its_new_end) {
  const auto answer = look_up([this] {
    EXPECT_EQ(editor_.put({kClient, kRule, kNow + seconds(90), false, false}, kNow), PutOutcome::kChanged);
  });
  ASSERT_TRUE(answer);
  EXPECT_GT(answer->entry.remaining, seconds(89));
}

}  // namespace
}  // namespace popgate
