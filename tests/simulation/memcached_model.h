// SPDX-License-Identifier: Apache-2.0
//
// memcached as Popgate meets it: the text protocol's commands that touch counters, expiry in whole seconds, eviction,
// and the replies word for word. memcached_model_test holds the same dialogues with the real one.
//
// Beside the items it tells of every increment that was carried out, which no real server remembers after a restart.
//
// Threads: one.
// Limits: items_max items; beyond it the one used least lately is evicted and counted. A key has kKeyBytesMax bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace popgate::simulation {

class MemcachedModel {
 public:
  static constexpr std::size_t kKeyBytesMax = 250;
  static constexpr std::int64_t kRelativeExpiryMax = 30 * 24 * 3600;

  struct Setup {
    std::size_t items_max = 1'000'000;
    std::function<std::int64_t()> seconds_now;  // the server's clock, which has whole seconds
    std::function<void(std::string_view key, std::uint64_t hits)> counted = [](std::string_view, std::uint64_t) {};
  };
  explicit MemcachedModel(Setup setup) : setup_(std::move(setup)) {}

  /// Carries out every whole command at the front of `input` and takes it out; replies are appended to `output`. False:
  /// the connection is to be closed.
  [[nodiscard]] bool serve(std::string& input, std::string& output);
  /// Evicts the items used least lately. Returns how many there were.
  std::size_t evict(std::size_t items);
  /// From now on an add finds no memory.
  void refuse_memory(bool refuse) { no_memory_ = refuse; }
  [[nodiscard]] std::size_t items() const { return items_.size(); }

 private:
  struct Item {
    std::string key;
    std::string value;
    std::string flags;
    std::int64_t expires = 0;  // 0: never
  };
  using Words = std::vector<std::string_view>;
  using Lru = std::list<Item>;  // the one used last in front

  [[nodiscard]] bool store(const Words& words, std::string& input, std::size_t line_bytes, std::string& output,
                           bool& whole);
  void store_item(const Words& words, std::string_view data, std::string& output);
  void get(const Words& words, std::string& output);
  void add_delta(const Words& words, std::string& output);
  void remove(const Words& words, std::string& output);
  void stats(std::string& output) const;
  [[nodiscard]] Item* find(std::string_view key);
  void erase(Lru::iterator item);

  Setup setup_;
  Lru lru_;
  std::unordered_map<std::string_view, Lru::iterator> items_;  // keys live in the items
  std::uint64_t evictions_ = 0;
  bool no_memory_ = false;
};

}  // namespace popgate::simulation
