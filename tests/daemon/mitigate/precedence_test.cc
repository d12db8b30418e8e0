// SPDX-License-Identifier: Apache-2.0
#include "daemon/mitigate/precedence.h"

#include <gtest/gtest.h>

#include <set>

#include "daemon/mitigate/digest.h"
#include "tests/daemon/mitigate/samples.h"

namespace popgate {
namespace {

Mitigation entry(Version version) {
  Mitigation m;
  m.key = kClient;
  m.version = version;
  m.decided_by = "a";
  m.evidence = sample_evidence();
  return m;
}

TEST(Precedence, epoch_goes_before_counter_before_node_before_incarnation) {
  EXPECT_TRUE(std::is_gt(precedence(entry({1, 0, 0, 0}), entry({0, 9, 9, 9}))));
  EXPECT_TRUE(std::is_gt(precedence(entry({1, 1, 0, 0}), entry({1, 0, 9, 9}))));
  EXPECT_TRUE(std::is_gt(precedence(entry({1, 1, 1, 0}), entry({1, 1, 0, 9}))));
  EXPECT_TRUE(std::is_gt(precedence(entry({1, 1, 1, 1}), entry({1, 1, 1, 0}))));
}

TEST(Precedence, ties_are_broken_by_content_the_same_way_from_both_sides) {
  const Mitigation a = entry({1, 2, 3, 4});
  Mitigation b = a;
  EXPECT_TRUE(std::is_eq(precedence(a, b)));
  b.evidence.estimate += 1;
  EXPECT_TRUE(std::is_neq(precedence(a, b)));
  EXPECT_EQ(precedence(a, b) > 0, precedence(b, a) < 0);
}

TEST(Precedence, the_end_is_not_content) {
  const Mitigation a = entry({1, 2, 3, 4});
  Mitigation b = a;
  b.until += minutes(1);
  b.until_wall += minutes(1);
  EXPECT_TRUE(std::is_eq(precedence(a, b)));
  EXPECT_EQ(entry_hash(a), entry_hash(b));
}

TEST(EntryHash, differs_with_every_field_that_is_shared) {
  const Mitigation a = entry({1, 2, 3, 4});
  std::set<std::uint64_t> hashes{entry_hash(a)};
  const auto changed = [&](auto change) {
    Mitigation b = a;
    change(b);
    return hashes.insert(entry_hash(b)).second;
  };
  EXPECT_TRUE(changed([](Mitigation& m) { m.key.lo ^= 1; }));
  EXPECT_TRUE(changed([](Mitigation& m) { m.space = Space::kOperator; }));
  EXPECT_TRUE(changed([](Mitigation& m) { m.version.epoch++; }));
  EXPECT_TRUE(changed([](Mitigation& m) { m.version.counter++; }));
  EXPECT_TRUE(changed([](Mitigation& m) { m.version.node++; }));
  EXPECT_TRUE(changed([](Mitigation& m) { m.version.incarnation++; }));
  EXPECT_TRUE(changed([](Mitigation& m) { m.lifted = true; }));
  EXPECT_TRUE(changed([](Mitigation& m) { m.rule++; }));
  EXPECT_TRUE(changed([](Mitigation& m) { m.rule_revision++; }));
  EXPECT_TRUE(changed([](Mitigation& m) { m.evidence.hi.reset(); }));
  EXPECT_TRUE(changed([](Mitigation& m) { m.evidence.under = DecidedUnder::kLocal; }));
  EXPECT_TRUE(changed([](Mitigation& m) { m.reason = "x"; }));
  EXPECT_TRUE(changed([](Mitigation& m) { m.decided_by = "b"; }));
}

TEST(DigestOfEntries, does_not_depend_on_order_and_names_the_bucket_that_differs) {
  const Key first{std::uint64_t{5} << 58, 1};
  const Key second{std::uint64_t{63} << 58, 2};
  Digest a;
  a.add(first, 11);
  a.add(second, 22);
  Digest b;
  b.add(second, 22);
  EXPECT_EQ(differing_buckets(a, b), std::uint64_t{1} << 5);
  b.add(first, 11);
  EXPECT_EQ(a, b);
  a.remove(second, 22);
  EXPECT_EQ(differing_buckets(a, b), std::uint64_t{1} << 63);
  EXPECT_EQ(a.entries, 1U);
}

}  // namespace
}  // namespace popgate
