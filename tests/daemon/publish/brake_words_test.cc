// SPDX-License-Identifier: Apache-2.0
//
// Tries the brakes' words in every order of loads and stores, with the writer stopped after every store and another one
// taking over. Writer and reader are the real ones; only the memory is a model.
#include "daemon/publish/brake_words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "libclient/check/table_brakes.h"

namespace popgate {
namespace {

constexpr RuleNumber kRules[] = {1, 2, 3};
constexpr std::size_t kWords = BrakeMemory::kFirstSlot + kTableRulesOffMax;

struct Store {
  std::size_t word;
  std::uint32_t value;
};

class ModelBrakes final : public BrakeMemory {
 public:
  [[nodiscard]] std::uint32_t load(std::size_t word) const override { return words_[word]; }
  void store(std::size_t word, std::uint32_t value) override {
    words_[word] = value;
    stores.push_back({word, value});
  }
  [[nodiscard]] std::vector<std::uint32_t> words() const { return words_; }
  std::vector<Store> stores;

 private:
  std::vector<std::uint32_t> words_ = std::vector<std::uint32_t>(kWords);
};

using States = std::vector<std::vector<std::uint32_t>>;

/// One execution of a reader: at each load it is told what the word has in a state at or after the one it is in.
struct TriedReader {
  const States& states;
  std::vector<std::size_t>& chosen;  // the state of each load; grows as loads come
  mutable std::size_t loads = 0;
  mutable std::size_t state = 0;

  [[nodiscard]] std::uint32_t at(std::size_t word) const {
    if (loads == chosen.size()) chosen.push_back(state);
    state = chosen[loads++];
    return states[state][word];
  }
  [[nodiscard]] bool all_off() const { return at(BrakeMemory::kAllOff) != 0; }
  [[nodiscard]] std::uint32_t count() const { return at(BrakeMemory::kCount); }
  [[nodiscard]] std::uint32_t slot(std::uint32_t i) const { return at(BrakeMemory::kFirstSlot + i); }
};

/// The answers of every execution.
std::vector<bool> every_answer(const States& states, RuleNumber rule, bool by_operator) {
  std::vector<bool> answers;
  std::vector<std::size_t> chosen;
  for (;;) {
    const TriedReader reader{states, chosen};
    answers.push_back(is_turned_off(reader, rule, by_operator));
    // Next: the last load that can be told something later is, and what follows it begins anew.
    while (!chosen.empty() && chosen.back() + 1 == states.size()) chosen.pop_back();
    if (chosen.empty()) return answers;
    ++chosen.back();
  }
}

bool is_off_in(const BrakeEffect& effect, RuleNumber rule, bool by_operator) {
  return effect.all || (!by_operator && std::ranges::find(effect.rules, rule) != effect.rules.end());
}

std::vector<BrakeEffect> every_effect() {
  std::vector<BrakeEffect> effects;
  for (unsigned bits = 0; bits < 8; ++bits) {
    for (const bool all : {false, true}) {
      BrakeEffect effect{.all = all, .rules = {}};
      for (unsigned i = 0; i < 3; ++i) {
        if ((bits >> i & 1) != 0) effect.rules.push_back(kRules[i]);
      }
      effects.push_back(effect);
    }
  }
  return effects;
}

/// The words as they are after each store of a writer who goes from one effect to the next.
States states_of(ModelBrakes& memory, const BrakeEffect& wanted) {
  States states{memory.words()};
  memory.stores.clear();
  write_brakes(memory, wanted);
  for (const Store& store : memory.stores) {
    states.push_back(states.back());
    states.back()[store.word] = store.value;
  }
  return states;
}

TEST(BrakeWords, a_reader_beside_every_change_says_what_was_or_what_will_be_and_never_moves_what_stays) {
  std::size_t tried = 0;
  for (const BrakeEffect& before : every_effect()) {
    for (const BrakeEffect& between : every_effect()) {
      for (const BrakeEffect& after : every_effect()) {
        ModelBrakes memory;
        write_brakes(memory, before);
        write_brakes(memory, between);  // so that slots lie free between used ones
        const auto states = states_of(memory, after);
        EXPECT_EQ(read_brakes(memory), after);
        for (const RuleNumber rule : kRules) {
          const std::set<bool> allowed{is_off_in(between, rule, false), is_off_in(after, rule, false)};
          for (const bool off : every_answer(states, rule, false)) {
            ++tried;
            ASSERT_TRUE(allowed.contains(off)) << "rule " << rule;
          }
        }
        const std::set<bool> allowed{between.all, after.all};
        for (const bool off : every_answer(states, kRules[0], true)) ASSERT_TRUE(allowed.contains(off));
      }
    }
  }
  EXPECT_GT(tried, 100'000U);
}

TEST(BrakeWords, a_writer_that_stops_after_any_store_leaves_words_from_which_the_next_one_goes_on) {
  for (const BrakeEffect& before : every_effect()) {
    for (const BrakeEffect& after : every_effect()) {
      ModelBrakes memory;
      write_brakes(memory, before);
      for (const auto& state : states_of(memory, after)) {
        for (const BrakeEffect& next : every_effect()) {
          ModelBrakes left;
          for (std::size_t word = 0; word < kWords; ++word) {
            if (state[word] != 0) left.store(word, state[word]);
          }
          write_brakes(left, next);
          ASSERT_EQ(read_brakes(left), next);
        }
      }
    }
  }
}

TEST(BrakeWords, everything_goes_off_and_on_again_in_one_store) {
  ModelBrakes memory;
  EXPECT_EQ(states_of(memory, {true, {}}).size(), 2U);
  EXPECT_EQ(states_of(memory, {true, {}}).size(), 1U);
  EXPECT_EQ(states_of(memory, {false, {}}).size(), 2U);
}

TEST(BrakeWords, as_many_rules_as_there_are_slots_are_off_and_their_slots_are_used_again) {
  ModelBrakes memory;
  BrakeEffect full;
  for (RuleNumber rule = 1; rule <= kTableRulesOffMax; ++rule) full.rules.push_back(rule);
  write_brakes(memory, full);
  EXPECT_EQ(read_brakes(memory), full);
  BrakeEffect other = full;
  for (RuleNumber& rule : other.rules) rule += 100;
  write_brakes(memory, other);
  EXPECT_EQ(read_brakes(memory), other);
  write_brakes(memory, {});
  EXPECT_EQ(memory.load(BrakeMemory::kCount), 0U) << "readers look at no slot";
}

TEST(BrakeWords, words_that_cannot_be_are_read_within_bounds) {
  ModelBrakes memory;
  memory.store(BrakeMemory::kCount, UINT32_MAX);
  memory.store(BrakeMemory::kFirstSlot, UINT32_MAX);
  EXPECT_EQ(read_brakes(memory), BrakeEffect{});
  write_brakes(memory, {false, {9}});
  EXPECT_EQ(read_brakes(memory), (BrakeEffect{false, {9}}));
}

}  // namespace
}  // namespace popgate
