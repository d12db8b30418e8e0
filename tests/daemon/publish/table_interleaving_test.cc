// SPDX-License-Identifier: Apache-2.0
//
// Tries the table's protocol in every order of loads and stores, with the writer stopped after every store and another
// one taking over. Writer and reader are the real ones; only the memory is a model.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "daemon/publish/table_editor.h"
#include "tests/daemon/publish/table_model.h"

namespace popgate {
namespace {

constexpr std::size_t kWords = kTableBucketsMin * kWordsPerBucket;
constexpr std::size_t kEntriesMax = 64;
constexpr HostInstant kUntil = kModelNow + std::chrono::seconds(60);

// Bucket 1 has one free entry for three actors, bucket 2 one for its own actor and for what spills: keys pass over one
// bucket or two, several at a time, and guests and the bucket's own keys take turns. The free entry is the first of its
// bucket, whose T also holds the overflow bit: those who leave make room for it.
const std::vector<Key> kLeavers{{1, 0x0100}, {2, 0x0200}};
const std::vector<Key> kResidents{{1, 0x1100}, {1, 0x1200}, {1, 0x1300}, {2, 0x2100}, {2, 0x2200}, {2, 0x2300}};
const std::vector<Key> kActors{{1, 0xa100}, {1, 0xa200}, {1, 0xa300}, {2, 0xb100}};
const Key kStranger{1, 0xeeee00};

Enforcement enforcement(const Key& key, RuleNumber rule) { return {key, rule, kUntil, false, false}; }

using Wanted = std::map<Key, RuleNumber>;

std::vector<Enforcement> as_list(const Wanted& wanted) {
  std::vector<Enforcement> list;
  for (const auto& [key, rule] : wanted) list.push_back(enforcement(key, rule));
  return list;
}

RuleNumber rule_of(const Wanted& wanted, const Key& key) {
  const auto it = wanted.find(key);
  return it == wanted.end() ? kAbsent : it->second;
}

struct Step {
  enum Kind { kInsert, kChange, kDelete } kind;
  std::size_t actor;
};

// The stores of one step and what was wanted before and after it.
struct Span {
  std::size_t begin;
  std::size_t end;
  Wanted before;
  Wanted after;
};

/// A writer that runs a sequence of steps on a model memory.
class WriterRun {
 public:
  WriterRun() : memory_(kWords) {
    // Generations start just before their wrap, so that every sequence crosses it.
    for (std::size_t slot = 0; slot < kWords / kWordsPerEntry; ++slot) {
      memory_.store(slot * kWordsPerEntry, pack_tag_word(0, kGenMask - 1, 0));
    }
    for (const Key& key : kResidents) wanted_[key] = next_rule_++;
    TableEditor editor(memory_, kTableBucketsMin, kEntriesMax);
    EXPECT_EQ(editor.adopt({}, kModelNow).inserted, 0U);
    for (const Key& key : kLeavers) EXPECT_EQ(editor.put(enforcement(key, 0), kModelNow), PutOutcome::kInserted);
    for (const auto& one : as_list(wanted_)) EXPECT_EQ(editor.put(one, kModelNow), PutOutcome::kInserted);
    for (const Key& key : kLeavers) EXPECT_TRUE(editor.remove(key));
    memory_.begin();
  }

  void play(const std::vector<Step>& steps) {
    TableEditor editor(memory_, kTableBucketsMin, kEntriesMax);
    EXPECT_EQ(editor.adopt(as_list(wanted_), kModelNow).kept, kResidents.size());
    for (const Step& step : steps) {
      const Key& key = kActors[step.actor];
      Span span{memory_.stores().size(), 0, wanted_, {}};
      if (step.kind == Step::kDelete) {
        wanted_.erase(key);
        EXPECT_TRUE(editor.remove(key));
      } else {
        wanted_[key] = next_rule_++;
        const auto outcome = editor.put(enforcement(key, wanted_[key]), kModelNow);
        EXPECT_EQ(outcome, step.kind == Step::kInsert ? PutOutcome::kInserted : PutOutcome::kChanged);
      }
      span.end = memory_.stores().size();
      span.after = wanted_;
      spans_.push_back(span);
    }
  }

  [[nodiscard]] const ModelMemory& memory() const { return memory_; }
  [[nodiscard]] const std::vector<Span>& spans() const { return spans_; }

  /// What may be answered for `key` in each state: during a step, what holds before it or after it.
  [[nodiscard]] Truth truth(const Key& key) const {
    Truth truth(memory_.states());
    for (const Span& span : spans_) {
      for (std::size_t state = span.begin; state <= span.end; ++state) {
        if (state < span.end) truth[state].insert(rule_of(span.before, key));
        if (state > span.begin) truth[state].insert(rule_of(span.after, key));
      }
    }
    return truth;
  }

 private:
  ModelMemory memory_;
  RuleNumber next_rule_ = 1;
  Wanted wanted_;
  std::vector<Span> spans_;
};

std::vector<Key> everyone() {
  std::vector<Key> keys = kResidents;
  keys.insert(keys.end(), kActors.begin(), kActors.end());
  keys.push_back(kStranger);
  return keys;
}

/// Every sequence of `length` steps that makes sense: a key is inserted, then changed or deleted.
void each_sequence(std::size_t length, const std::function<void(const std::vector<Step>&)>& visit) {
  std::vector<Step> steps;
  std::vector<bool> present(kActors.size());
  const std::function<void()> extend = [&] {
    if (steps.size() == length) return visit(steps);
    for (std::size_t actor = 0; actor < kActors.size(); ++actor) {
      const bool was = present[actor];
      for (const auto kind : {Step::kInsert, Step::kChange, Step::kDelete}) {
        if ((kind == Step::kInsert) == was) continue;
        steps.push_back({kind, actor});
        present[actor] = kind != Step::kDelete;
        extend();
        present[actor] = was;
        steps.pop_back();
      }
    }
  };
  extend();
}

Findings check(const WriterRun& run, const ModelReader& reader) {
  Findings findings;
  for (const Key& key : everyone()) findings += try_all(run.memory(), key, run.truth(key), reader);
  return findings;
}

TEST(TableInterleaving, every_reader_beside_every_sequence_of_five_steps_is_right) {
  Findings findings;
  each_sequence(5, [&](const std::vector<Step>& steps) {
    WriterRun run;
    run.play(steps);
    findings += check(run, real_reader);
  });
  EXPECT_EQ(findings.wrong, 0U);
  EXPECT_EQ(findings.invisible, 0U);
  EXPECT_GT(findings.executions, 100'000U) << "the check itself must reach what it claims to";
}

/// A writer stopped after `stop` stores, then another that takes over and wants `wanted`; perhaps stopped in turn.
class Takeover {
 public:
  Takeover(const WriterRun& run, std::size_t stop, const Span& span, const Wanted& wanted)
      : memory_(run.memory().stopped_after(stop)), stop_(stop), span_(span), wanted_(wanted) {
    for (const Key& key : everyone()) truth_[key] = run.truth(key);
  }

  /// The second writer's adoption, and then perhaps its first insert.
  void adopt(std::optional<Key> then_insert = std::nullopt) {
    TableEditor editor(memory_, kTableBucketsMin, kEntriesMax);
    EXPECT_TRUE(editor.adopt(as_list(wanted_), kModelNow).refused.empty());
    memory_.store(0, memory_.load(0));  // changes nothing: the state in which the adoption is complete
    adopted_state_ = memory_.states() - 1;
    if (!then_insert) return;
    inserted_ = then_insert;
    EXPECT_EQ(editor.put(enforcement(*then_insert, kInsertedLater), kModelNow), PutOutcome::kInserted);
  }
  void stop_after(std::size_t stores) { memory_ = memory_.stopped_after(stop_ + stores); }
  [[nodiscard]] std::size_t adopter_stores() const { return memory_.stores().size() - stop_; }

  [[nodiscard]] Findings check(const ModelReader& reader) const {
    Findings findings;
    for (const Key& key : everyone()) {
      Truth truth = truth_.at(key);
      truth.resize(stop_ + 1);
      // Until the adopter is through, the interrupted step may show or not; every other key is as it was.
      const std::set<RuleNumber> meanwhile{rule_of(span_.before, key), rule_of(span_.after, key),
                                           rule_of(wanted_, key)};
      while (truth.size() < adopted_state_) truth.push_back(meanwhile);
      truth.push_back({rule_of(wanted_, key)});
      while (truth.size() < memory_.states()) truth.push_back(truth.back());
      for (std::size_t state = adopted_state_ + 1; key == inserted_ && state < truth.size(); ++state) {
        if (state + 1 == truth.size()) truth[state].clear();
        truth[state].insert(kInsertedLater);
      }
      findings += try_all(memory_, key, truth, reader);
    }
    return findings;
  }

 private:
  static constexpr RuleNumber kInsertedLater = 999;
  ModelMemory memory_;
  std::size_t stop_;
  Span span_;
  Wanted wanted_;
  std::size_t adopted_state_ = 0;
  std::optional<Key> inserted_;
  std::map<Key, Truth> truth_;
};

/// Every point at which the last step of a run can be interrupted, with what the record file then says.
void each_takeover(const WriterRun& run, const std::function<void(const Takeover&)>& visit) {
  const Span& last = run.spans().back();
  visit(Takeover(run, last.begin, last, last.before));  // killed before the record was written
  for (std::size_t stop = last.begin; stop <= last.end; ++stop) visit(Takeover(run, stop, last, last.after));
}

TEST(TableInterleaving, writer_stopped_after_any_store_leaves_a_table_that_readers_and_the_next_writer_can_use) {
  Findings findings;
  for (std::size_t length = 1; length <= 4; ++length) {
    each_sequence(length, [&](const std::vector<Step>& steps) {
      WriterRun run;
      run.play(steps);
      each_takeover(run, [&](Takeover takeover) {
        takeover.adopt();
        findings += takeover.check(real_reader);
      });
    });
  }
  EXPECT_EQ(findings.wrong, 0U);
  EXPECT_EQ(findings.invisible, 0U);
  EXPECT_GT(findings.executions, 100'000U);
}

TEST(TableInterleaving, second_writer_may_be_stopped_after_any_store_too) {
  Findings findings;
  for (std::size_t length = 1; length <= 4; ++length) {
    each_sequence(length, [&](const std::vector<Step>& steps) {
      WriterRun run;
      run.play(steps);
      each_takeover(run, [&](Takeover first) {
        Takeover whole = first;
        whole.adopt();
        for (std::size_t stores = 0; stores < whole.adopter_stores(); ++stores) {
          Takeover second = whole;
          second.stop_after(stores);
          second.adopt();
          findings += second.check(real_reader);
        }
      });
    });
  }
  EXPECT_EQ(findings.wrong, 0U);
  EXPECT_EQ(findings.invisible, 0U);
  EXPECT_GT(findings.executions, 100'000U);
}

// --- The check finds the faults that the protocol guards against
// ------------------------------------------------------

/// The real reader on a memory that shows it something else.
template <typename Words>
std::optional<RuleNumber> read_through(const Words& words, const Key& key) {
  const auto now = [] { return std::optional<HostInstant>(kModelNow); };
  const auto found = search_table(words, kTableBucketsMin, key, now);
  return found ? std::optional(found->value.rule) : std::nullopt;
}

/// Shows no overflow bit.
struct WithoutOverflow {
  ExecutionWords words;
  [[nodiscard]] std::uint64_t load(std::size_t word) const {
    return word % kWordsPerBucket == 0 ? words.load(word) & ~kOverflowBit : words.load(word);
  }
};

/// Shows the same T at the second look as at the first.
struct WithoutSecondLook {
  ExecutionWords words;
  std::map<std::size_t, std::uint64_t>* seen;
  [[nodiscard]] std::uint64_t load(std::size_t word) const {
    if (word % kWordsPerEntry != 0) return words.load(word);
    const auto it = seen->find(word);
    return it != seen->end() ? it->second : (*seen)[word] = words.load(word);
  }
};

std::optional<RuleNumber> reader_without_second_look(const ExecutionWords& words, const Key& key) {
  std::map<std::size_t, std::uint64_t> seen;
  return read_through(WithoutSecondLook{words, &seen}, key);
}

std::optional<RuleNumber> reader_without_generations(const ExecutionWords& words, const Key& key) {
  std::map<std::size_t, std::uint64_t> seen;
  struct Neither {
    WithoutSecondLook once;
    [[nodiscard]] std::uint64_t load(std::size_t word) const {
      const bool is_tag = word % kWordsPerEntry == 0;
      return once.load(word) & ~(is_tag ? kGenMask << kTagGenShift : kGenMask);
    }
  };
  return read_through(Neither{{words, &seen}}, key);
}

std::optional<RuleNumber> reader_without_overflow(const ExecutionWords& words, const Key& key) {
  return read_through(WithoutOverflow{words}, key);
}

// The interrupted key is not wanted any more (its record ended, or was lost), and the next key takes its entry.
TEST(TableInterleaving, next_writers_key_is_not_taken_for_the_interrupted_one) {
  Findings findings;
  each_sequence(3, [&](const std::vector<Step>& steps) {
    WriterRun run;
    run.play(steps);
    const Span& last = run.spans().back();
    const Key& interrupted = kActors[steps.back().actor];
    Wanted without = last.before;
    without.erase(interrupted);
    for (std::size_t stop = last.begin; stop <= last.end; ++stop) {
      for (const Key& next : kActors) {
        if (next == interrupted || without.contains(next)) continue;
        Takeover takeover(run, stop, last, without);
        takeover.adopt(next);
        findings += takeover.check(real_reader);
        findings += takeover.check(reader_without_second_look);
      }
    }
  });
  EXPECT_EQ(findings.wrong, 0U);
  EXPECT_EQ(findings.invisible, 0U);
  EXPECT_GT(findings.executions, 100'000U);
}

TEST(TableInterleaving, check_finds_wrong_blocks_of_a_reader_without_generations) {
  Findings findings;
  each_sequence(3, [&](const std::vector<Step>& steps) {
    WriterRun run;
    run.play(steps);
    findings += check(run, reader_without_generations);
  });
  EXPECT_GT(findings.wrong, 0U);
}

TEST(TableInterleaving, check_finds_invisible_entries_of_a_reader_that_stays_at_home) {
  Findings findings;
  each_sequence(3, [&](const std::vector<Step>& steps) {
    WriterRun run;
    run.play(steps);
    findings += check(run, reader_without_overflow);
  });
  EXPECT_GT(findings.invisible, 0U);
}

// --- Generations come round ------------------------------------------------------------------------------------------

// Until they do, the generations alone are enough, in takeovers too; the second look is for the reader that stands
// still for longer.
TEST(TableInterleaving, generations_alone_suffice_until_they_come_round) {
  Findings findings;
  each_sequence(4, [&](const std::vector<Step>& steps) {
    WriterRun run;
    run.play(steps);
    findings += check(run, reader_without_second_look);
    each_takeover(run, [&](Takeover takeover) {
      takeover.adopt();
      findings += takeover.check(reader_without_second_look);
    });
  });
  EXPECT_EQ(findings.wrong, 0U);
  EXPECT_EQ(findings.invisible, 0U);
}

TEST(TableInterleaving, reader_that_stands_still_while_all_generations_pass_is_not_fooled) {
  const std::size_t all = std::size_t{1} << kGenBits;
  // One entry: the first key's tenancy, then as many of another key's as there are generations.
  WriterRun run;
  std::vector<Step> steps{{Step::kInsert, 2}, {Step::kInsert, 0}, {Step::kDelete, 0}};
  for (std::size_t i = 0; i < all; ++i) {
    steps.push_back({Step::kInsert, 1});
    steps.push_back({Step::kDelete, 1});
  }
  run.play(steps);
  const Findings once = try_all(run.memory(), kActors[0], run.truth(kActors[0]), reader_without_second_look);
  EXPECT_GT(once.wrong, 0U) << "the sequence must be one that can fool a reader";
  const Findings real = try_all(run.memory(), kActors[0], run.truth(kActors[0]), real_reader);
  EXPECT_EQ(real.wrong, 0U);
  EXPECT_EQ(real.invisible, 0U);
}

}  // namespace
}  // namespace popgate
