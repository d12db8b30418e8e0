// SPDX-License-Identifier: Apache-2.0
//
// Writer and readers as threads of one process, at one address, so that ThreadSanitizer sees both sides.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include "daemon/publish/table_editor.h"
#include "tests/daemon/publish/image_memory.h"
#include "tests/daemon/publish/known_keys.h"

namespace popgate {
namespace {

constexpr HostInstant kNow{std::chrono::seconds(500'000)};
constexpr HostInstant kUntil = kNow + std::chrono::hours(1);
constexpr int kSteps = 300'000;

struct Reader {
  const TableReader& table;
  std::uint64_t look_ups = 0;
  std::uint64_t found = 0;
  std::string fault = {};

  void run(std::latch& all_here, const std::atomic<bool>& stop) {
    all_here.arrive_and_wait();
    for (std::uint64_t i = 0; fault.empty() && !stop.load(std::memory_order_relaxed); i = (i + 1) % KnownKeys::kAll) {
      const TableAnswer answer = table.look_up(KnownKeys::key(i), kNow);
      fault = KnownKeys::fault(i, answer);
      ++look_ups;
      found += answer.live ? 1 : 0;
    }
  }
};

std::vector<Enforcement> residents() {
  std::vector<Enforcement> list;
  for (std::uint64_t i = 0; i < KnownKeys::kResidents; ++i) {
    list.push_back({KnownKeys::key(i), KnownKeys::rule(i, 0), kUntil, false, false});
  }
  return list;
}

TEST(TableThreads, readers_beside_a_writer_never_see_a_wrong_or_a_missing_entry) {
  ImageMemory memory(16, kNow);
  auto editor = std::make_unique<TableEditor>(memory, 16, 1000);
  ASSERT_EQ(editor->adopt(residents(), kNow).inserted, KnownKeys::kResidents);
  const TableReader table = memory.reader();
  std::atomic<bool> stop = false;
  std::latch all_here(3);
  Reader readers[2] = {{table}, {table}};
  std::thread threads[2] = {std::thread([&] { readers[0].run(all_here, stop); }),
                            std::thread([&] { readers[1].run(all_here, stop); })};

  all_here.arrive_and_wait();
  std::mt19937_64 random(7);
  std::uint64_t refused = 0;
  for (int step = 0; step < kSteps; ++step) {
    const std::uint64_t i = KnownKeys::comer(random());
    const std::uint64_t what = random() % 100;
    if (what < 60) {
      refused += editor->put({KnownKeys::key(i), KnownKeys::rule(i, random()), kUntil, false, false}, kNow) ==
                         PutOutcome::kRefused
                     ? 1
                     : 0;
    } else if (what < 99) {
      editor->remove(KnownKeys::key(i));
    } else {  // the next daemon, which finds all but the residents unexplained
      editor = std::make_unique<TableEditor>(memory, 16, 1000);
      ASSERT_EQ(editor->adopt(residents(), kNow).kept, KnownKeys::kResidents);
    }
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  for (const Reader& reader : readers) {
    EXPECT_EQ(reader.fault, "");
    EXPECT_GT(reader.look_ups, 0U);
    EXPECT_LT(reader.found, reader.look_ups);
  }
  EXPECT_EQ(refused, 0U);
}

}  // namespace
}  // namespace popgate
