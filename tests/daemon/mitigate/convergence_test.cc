// SPDX-License-Identifier: Apache-2.0
// Random histories of a PoP: decisions, lifts and blocks on several nodes while messages are lost, repeated and
// reordered and daemons restart. RapidCheck prints its seed; RC_PARAMS="seed=N" repeats a run.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <iostream>

#include "tests/daemon/mitigate/pop_model.h"
#include "tests/daemon/mitigate/samples.h"

namespace rc {

template <>
struct Arbitrary<popgate::Step> {
  static Gen<popgate::Step> arbitrary() {
    using popgate::Step;
    return gen::build<Step>(gen::set(&Step::kind, gen::inRange<std::uint8_t>(0, 20)),
                            gen::set(&Step::node, gen::inRange<std::uint8_t>(0, 5)),
                            gen::set(&Step::key, gen::arbitrary<std::uint8_t>()),
                            gen::set(&Step::amount, gen::arbitrary<std::uint16_t>()));
  }
};

}  // namespace rc

namespace popgate {

void showValue(const Step& step, std::ostream& out) {
  out << "{" << int{step.kind} << ", " << int{step.node} << ", " << int{step.key} << ", " << step.amount << "}";
}

namespace {

// 20,000 histories are what the first design of versions broke on; under a sanitizer a part of them.
#ifdef NDEBUG
constexpr char kRuns[] = "max_success=20000 max_size=150";
#else
constexpr char kRuns[] = "max_success=2000 max_size=150";
#endif
// Read by RapidCheck when the first property is checked; what the caller has set stands.
const int kRunsSet = setenv("RC_PARAMS", kRuns, 0);

using History = std::vector<Step>;

TEST(Convergence, all_nodes_end_with_the_same_set_no_lift_is_undone_and_no_end_creeps) {
  ASSERT_EQ(kRunsSet, 0);
  EXPECT_TRUE(rc::check("after any history and a final exchange", [](const History& history) {
    PopModel pop(*rc::gen::inRange<std::size_t>(3, 6));
    for (const Step& step : history) pop.run(step);
    pop.heal();
    RC_ASSERT(pop.difference_between_nodes() == "");
    RC_ASSERT(pop.undone_lift() == "");
    RC_ASSERT(pop.crept_end() == "");
  }));
}

}  // namespace
}  // namespace popgate
