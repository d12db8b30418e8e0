// SPDX-License-Identifier: Apache-2.0
//
// A worker maps a table that it did not write: no bytes may lead a look-up outside the mapping, or give an answer that
// no table can hold. The input is the first bytes of the header, then words that fill the buckets.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "libclient/check/table_reader.h"
#include "tests/libclient/check/table_image.h"

namespace popgate {
namespace {

constexpr HostInstant kNow{std::chrono::seconds(1'000'000)};
constexpr std::size_t kHeaderBytes = 16;

void require(bool condition) {
  if (!condition) std::abort();
}

void look_up(const TableReader& reader, const Key& key) {
  const TableAnswer answer = reader.look_up(key, kNow);
  if (!answer.live) return;
  require(answer.rule < kRuleNumbersMax);
  require(answer.remaining > microseconds(0) && answer.remaining <= kTableAheadMax);
}

void run(const std::uint8_t* data, std::size_t bytes) {
  TableImage image(8, kNow);
  for (std::size_t i = 0; i < 8 * kWordsPerBucket && bytes >= kHeaderBytes + (i + 1) * 8; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, data + kHeaderBytes + i * 8, sizeof word);
    image.word(i).store(word);
  }
  TableReader reader;
  const char* reason = "";
  require(reader.open(image.bytes(), reason));
  for (std::size_t i = 0; i < 8 * kWordsPerBucket; ++i) look_up(reader, {i, image.word(i).load()});

  // Now a header of the input's: opened or refused, never followed out of the image.
  for (std::size_t i = 0; i < kHeaderBytes && i < bytes; ++i) image.bytes()[i] = std::byte(data[i]);
  require(reader.open(image.bytes(), reason) == (*reason == '\0'));
  for (std::size_t i = 0; i < 8 * kWordsPerBucket; ++i) look_up(reader, {image.word(i).load(), image.word(i).load()});
}

}  // namespace
}  // namespace popgate

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  popgate::run(data, bytes);
  return 0;
}
