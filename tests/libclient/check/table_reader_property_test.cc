// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "libclient/check/table_reader.h"
#include "tests/libclient/check/table_image.h"

namespace popgate {
namespace {

const HostInstant kNow{std::chrono::seconds(1000)};

RC_GTEST_PROP(TableReaderProperty, any_bytes_behind_a_good_header_are_read_without_leaving_them,
              (const std::vector<std::uint64_t>& words, std::uint64_t hi, std::uint64_t lo)) {
  TableImage image(8, kNow);
  for (std::size_t i = 0; !words.empty() && i < 8 * kWordsPerBucket; ++i) image.word(i).store(words[i % words.size()]);
  TableReader reader;
  const char* reason = "";
  RC_ASSERT(reader.open(image.bytes(), reason));
  // Keys whose tags are in the table, too: the heap's end is right behind the image, and asan watches it.
  for (const Key& key : {Key{hi, lo}, Key{7, words.empty() ? 0 : words[0]}}) {
    const TableAnswer answer = reader.look_up(key, kNow);
    if (!answer.live) continue;
    RC_ASSERT(answer.rule < kRuleNumbersMax);
    RC_ASSERT(answer.remaining.count() > 0);
    RC_ASSERT(answer.remaining <= kTableAheadMax);
  }
}

RC_GTEST_PROP(TableReaderProperty, any_header_is_opened_or_refused_with_a_reason, (std::vector<std::uint8_t> header)) {
  TableImage image(8, kNow);
  const std::size_t bytes = std::min<std::size_t>(header.size(), 16);
  std::transform(header.begin(), header.begin() + static_cast<std::ptrdiff_t>(bytes),
                 image.bytes().begin() + static_cast<std::ptrdiff_t>(16 - bytes),
                 [](std::uint8_t b) { return std::byte(b); });
  TableReader reader;
  const char* reason = "";
  const bool opened = reader.open(image.bytes(), reason);
  RC_ASSERT(opened == (*reason == '\0'));
  RC_ASSERT(opened == reader.is_open());
  (void)reader.look_up({1, 2}, kNow);
}

RC_GTEST_PROP(TableReaderProperty, values_pack_and_unpack,
              (std::uint32_t until, std::uint8_t admit, std::uint32_t rule, std::uint8_t flags, std::uint8_t gen)) {
  const TableValue value{until & kUntilMask, admit, rule % kRuleNumbersMax, static_cast<std::uint8_t>(flags & 3)};
  const std::uint64_t word = pack_value_word(value, gen & kGenMask);
  const TableValue back = unpack_value_word(word);
  RC_ASSERT(back.until == value.until && back.admit == value.admit && back.rule == value.rule);
  RC_ASSERT(back.flags == value.flags && gen_in_value_word(word) == (gen & kGenMask));
}

RC_GTEST_PROP(TableReaderProperty, end_is_never_early_and_at_most_a_step_late,
              (std::uint64_t now_us, std::uint32_t us)) {
  const HostInstant now{microseconds(now_us % (1ULL << 50))};
  const auto lasting = microseconds(1 + us % std::uint64_t{1'209'600'000'000});
  const microseconds remaining = until_remaining(until_steps(now + lasting), now);
  RC_ASSERT(remaining >= lasting);
  // One step of rounding, and one more where a step of 0 would mean a free entry.
  RC_ASSERT(remaining < lasting + 2 * kUntilStep);
}

}  // namespace
}  // namespace popgate
