// SPDX-License-Identifier: Apache-2.0
#include "libclient/snapshots.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <thread>

#include "libclient/file_descriptor.h"

namespace popgate {
namespace {

// A mapped page of its own that holds one number.
Mapping page_of(std::uint64_t number) {
  const FileDescriptor fd(memfd_create("page", MFD_CLOEXEC));
  EXPECT_EQ(pwrite(fd.get(), &number, sizeof number, 0), static_cast<ssize_t>(sizeof number));
  Mapping mapping;
  EXPECT_TRUE(mapping.map(fd.get(), sizeof number, PROT_READ, true));
  return mapping;
}

std::uint64_t number_in(const Mapping& mapping) {
  std::uint64_t number = 0;
  std::memcpy(&number, mapping.data(), sizeof number);
  return number;
}

void publish(Snapshots& snapshots, std::uint64_t number) {
  snapshots.next().table_memory = page_of(number);
  snapshots.next().rules_memory = page_of(number);
  snapshots.publish();
}

TEST(Snapshots, there_is_none_at_first_and_then_the_latest) {
  Snapshots snapshots;
  EXPECT_EQ(Snapshots::Use(snapshots).get(), nullptr);
  for (const std::uint64_t number : {1U, 2U, 3U}) {
    ASSERT_TRUE(snapshots.ready());
    publish(snapshots, number);
    EXPECT_EQ(number_in(Snapshots::Use(snapshots).get()->table_memory), number);
  }
}

TEST(Snapshots, a_pair_that_is_in_use_is_kept_and_nothing_new_is_taken_meanwhile) {
  Snapshots snapshots;
  publish(snapshots, 1);
  auto use = std::make_unique<Snapshots::Use>(snapshots);
  const Snapshot* const held = use->get();
  ASSERT_TRUE(snapshots.ready());
  publish(snapshots, 2);
  EXPECT_FALSE(snapshots.ready());
  EXPECT_EQ(number_in(held->table_memory), 1U);
  use.reset();
  EXPECT_TRUE(snapshots.ready());
  EXPECT_FALSE(held->table_memory.is_mapped());
}

TEST(Snapshots, a_pair_that_nobody_uses_is_given_back_at_once) {
  Snapshots snapshots;
  publish(snapshots, 1);
  const Snapshot* const old = Snapshots::Use(snapshots).get();
  ASSERT_TRUE(snapshots.ready());
  publish(snapshots, 2);
  EXPECT_TRUE(snapshots.ready());
  EXPECT_FALSE(old->table_memory.is_mapped());
}

TEST(Snapshots, a_use_within_a_use_gets_nothing) {
  Snapshots snapshots;
  publish(snapshots, 1);
  const Snapshots::Use outer(snapshots);
  {
    const Snapshots::Use inner(snapshots);
    EXPECT_FALSE(inner.holds());
    EXPECT_EQ(inner.get(), nullptr);
  }
  EXPECT_TRUE(outer.holds());
  ASSERT_TRUE(snapshots.ready());
  publish(snapshots, 2);
  EXPECT_FALSE(snapshots.ready()) << "the inner one did not end the outer one";
}

// A pair that is unmapped too early is a crash here, one that changes in a check a difference, and ThreadSanitizer sees
// the rest.
TEST(Snapshots, two_threads_check_and_replace_without_waiting_for_each_other) {
  Snapshots snapshots;
  snapshots.set_concurrent(true);
  publish(snapshots, 1);
  constexpr std::uint64_t kPublished = 3000;
  std::atomic<bool> done{false};
  std::thread updater([&] {
    for (std::uint64_t number = 2; number <= kPublished; ++number) {
      while (!snapshots.ready()) std::this_thread::yield();
      publish(snapshots, number);
    }
    done.store(true);
  });
  std::uint64_t last = 0;
  bool consistent = true;
  for (bool finished = false; !finished;) {
    finished = done.load();
    const Snapshots::Use use(snapshots);
    const std::uint64_t table = number_in(use.get()->table_memory);
    const std::uint64_t rules = number_in(use.get()->rules_memory);
    consistent = consistent && table == rules && table >= last && number_in(use.get()->table_memory) == table;
    last = table;
  }
  updater.join();
  EXPECT_TRUE(consistent);
  EXPECT_EQ(last, kPublished);
}

}  // namespace
}  // namespace popgate
