// SPDX-License-Identifier: Apache-2.0
//
// Every reader that could run beside a given sequence of stores.
//
// The writer is a list of stores. A reader that has seen store n may, at each load, see the value that a word has after
// store n or any later one; seeing a value moves it on to the store that made it. That is what release and acquire
// promise, so the tries below are all executions, of hardware that reorders too. The reader is the real one
// (search_table), run again and again, each time with other values of its loads.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "daemon/publish/table_memory.h"
#include "libclient/check/table_search.h"

namespace popgate {

/// A memory that remembers every store. State n is the memory after its first n stores.
class ModelMemory final : public TableMemory {
 public:
  struct Store {
    std::size_t word;
    std::uint64_t value;
  };

  explicit ModelMemory(std::size_t words) : initial_(words), now_(words) {}

  [[nodiscard]] std::uint64_t load(std::size_t word) const override { return now_[word]; }
  void store(std::size_t word, std::uint64_t value) override {
    now_[word] = value;
    stores_.push_back({word, value});
  }

  /// What was stored so far becomes the beginning: no reader sees less.
  void begin() {
    initial_ = now_;
    stores_.clear();
  }
  /// The same memory whose writer stopped after `count` stores.
  [[nodiscard]] ModelMemory stopped_after(std::size_t count) const {
    ModelMemory result(initial_.size());
    result.initial_ = result.now_ = initial_;
    for (std::size_t i = 0; i < count; ++i) result.store(stores_[i].word, stores_[i].value);
    return result;
  }

  [[nodiscard]] std::size_t states() const { return stores_.size() + 1; }
  [[nodiscard]] const std::vector<Store>& stores() const { return stores_; }
  [[nodiscard]] std::uint64_t initial(std::size_t word) const { return initial_[word]; }

 private:
  std::vector<std::uint64_t> initial_;
  std::vector<std::uint64_t> now_;
  std::vector<Store> stores_;
};

/// The versions of every word over the states of a memory.
class WordHistory {
 public:
  struct Version {
    std::size_t first_state;
    std::uint64_t value;
  };

  explicit WordHistory(const ModelMemory& memory) {
    versions_.reserve(kWordsMax + memory.stores().size());
    for (std::size_t word = 0; word < kWordsMax; ++word) {
      begin_[word] = versions_.size();
      versions_.push_back({0, memory.initial(word)});
      for (std::size_t i = 0; i < memory.stores().size(); ++i) {
        if (memory.stores()[i].word == word) versions_.push_back({i + 1, memory.stores()[i].value});
      }
    }
    begin_[kWordsMax] = versions_.size();
  }

  /// The version at `state`, then each later one.
  [[nodiscard]] std::span<const Version> from(std::size_t word, std::size_t state) const {
    std::size_t at = begin_[word + 1] - 1;
    while (versions_[at].first_state > state) --at;
    return std::span(versions_).subspan(at, begin_[word + 1] - at);
  }

 private:
  static constexpr std::size_t kWordsMax = kTableBucketsMin * kWordsPerBucket;
  std::vector<Version> versions_;  // word by word
  std::array<std::size_t, kWordsMax + 1> begin_{};
};

/// One execution: takes the choices it is told, then the first of each; can tell what comes next.
class Execution {
 public:
  explicit Execution(const WordHistory& history) : history_(history) {}

  void restart(std::size_t state) {
    state_ = state;
    depth_ = 0;
  }
  std::uint64_t load(std::size_t word) {
    const std::span<const WordHistory::Version> versions = history_.from(word, state_);
    if (depth_ == choices_.size()) choices_.push_back({0, versions.size()});
    const WordHistory::Version& chosen = versions[choices_[depth_++].taken];
    state_ = std::max(state_, chosen.first_state);
    return chosen.value;
  }
  /// False when every combination has been tried.
  bool next() {
    choices_.resize(depth_);
    while (!choices_.empty() && ++choices_.back().taken == choices_.back().available) choices_.pop_back();
    return !choices_.empty();
  }
  [[nodiscard]] std::size_t state() const { return state_; }

 private:
  struct Choice {
    std::size_t taken;
    std::size_t available;
  };
  const WordHistory& history_;
  std::vector<Choice> choices_;
  std::size_t depth_ = 0;
  std::size_t state_ = 0;
};

struct ExecutionWords {
  Execution* execution;
  [[nodiscard]] std::uint64_t load(std::size_t word) const { return execution->load(word); }
};

/// A reader: the rule it found for the key, or nothing.
using ModelReader = std::function<std::optional<RuleNumber>(const ExecutionWords&, const Key&)>;

inline constexpr HostInstant kModelNow{std::chrono::seconds(100'000)};

inline std::optional<RuleNumber> real_reader(const ExecutionWords& words, const Key& key) {
  const auto now = [] { return std::optional<HostInstant>(kModelNow); };
  const auto found = search_table(words, kTableBucketsMin, key, now);
  if (!found) return std::nullopt;
  return found->value.rule;
}

/// What a reader of one key may answer in each state; kAbsent for "not mitigated".
inline constexpr RuleNumber kAbsent = kRuleNumbersMax;
using Truth = std::vector<std::set<RuleNumber>>;

struct Findings {
  std::uint64_t executions = 0;
  std::uint64_t wrong = 0;      // another key's value, or one that the key had not at any moment of the look-up
  std::uint64_t invisible = 0;  // not found although it was there at every moment of the look-up
  Findings& operator+=(const Findings& other) {
    executions += other.executions;
    wrong += other.wrong;
    invisible += other.invisible;
    return *this;
  }
};

/// Runs every execution of `reader` for `key`, from every state on.
inline Findings try_all(const ModelMemory& memory, const Key& key, const Truth& truth, const ModelReader& reader) {
  Findings findings;
  const WordHistory history(memory);
  for (std::size_t first = 0; first < memory.states(); ++first) {
    Execution execution(history);
    do {
      execution.restart(first);
      const RuleNumber answer = reader({&execution}, key).value_or(kAbsent);
      bool possible = false;
      for (std::size_t state = first; state <= execution.state(); ++state) {
        possible = possible || truth[state].contains(answer);
      }
      ++findings.executions;
      if (!possible) ++(answer == kAbsent ? findings.invisible : findings.wrong);
    } while (execution.next());
  }
  return findings;
}

}  // namespace popgate
