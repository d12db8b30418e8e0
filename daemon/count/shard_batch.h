// SPDX-License-Identifier: Apache-2.0
//
// One batch for one shard: the bytes to send, and what each reply will be an answer to.
//
// All increments stand first, then the reads, on one connection: so that what is read contains what was added. The
// reads are gets of at most kGetKeysMax keys each; memcached itself sets no bound, but a get is answered in one piece.
//
// Threads: a value.
// Invariants: 1. Replies come in this order: one for every increment, one for the creation of the generation key if the
//                batch has one, then for every get its values and an END.
// Limits: the builder (shard.cc) bounds keys and bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/count/key_windows.h"

namespace popgate {

struct BatchIncrement {
  WindowIndex window = kNoWindow;
  SlotIndex slot = 0;
  std::uint64_t hits = 0;
  std::uint32_t end_byte = 0;  // of its command, in the batch's text
  std::uint8_t rounds = 0;     // commands tried before this one for the same hits
  bool creates = false;        // an add; else an incr
  HostInstant waits_since{};   // since when hits of its shard waited when it was made
};

struct BatchRead {
  WindowIndex window = kNoWindow;  // kNoWindow: the shard's generation key
  SlotIndex slot = 0;
  std::uint32_t key_begin = 0;
  std::uint32_t key_bytes = 0;
  bool ends_get = false;
};

class ShardBatch {
 public:
  static constexpr std::size_t kGetKeysMax = 256;

  /// `expiry` is used by an add.
  void add_increment(BatchIncrement increment, std::string_view key, std::chrono::seconds expiry);
  void add_generation(std::string_view key, std::uint64_t value);
  void add_read(WindowIndex window, SlotIndex slot, std::string_view key);
  /// Ends the last get. Nothing is added afterwards.
  void finish();

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const std::vector<BatchIncrement>& increments() const { return increments_; }
  [[nodiscard]] const std::vector<BatchRead>& reads() const { return reads_; }
  [[nodiscard]] bool creates_generation() const { return creates_generation_; }
  [[nodiscard]] std::string_view key_of(const BatchRead& read) const {
    return std::string_view(text_).substr(read.key_begin, read.key_bytes);
  }

  /// The keys to report once every reply is here; each window is pinned once.
  std::vector<WindowIndex> windows;
  PopInstant made_at{};

 private:
  std::string text_;
  std::vector<BatchIncrement> increments_;
  std::vector<BatchRead> reads_;
  std::size_t keys_in_get_ = 0;
  bool creates_generation_ = false;
};

}  // namespace popgate
