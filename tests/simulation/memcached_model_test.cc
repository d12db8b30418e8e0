// SPDX-License-Identifier: Apache-2.0
// The same dialogues with the model and with the real memcached: the same replies, to the byte.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/process/memcached.h"
#include "tests/simulation/memcached_model.h"

namespace popgate::simulation {
namespace {

struct Turn {
  std::string command;
  std::string ending = "\r\n";  // of the reply
};

const std::vector<Turn> kDialogue{
    {"incr a 1\r\n"},
    {"add a 0 100 1\r\n5\r\n"},
    {"add a 0 100 1\r\n6\r\n"},
    {"incr a 7\r\n"},
    {"get a\r\n", "END\r\n"},
    {"get b\r\n", "END\r\n"},
    {"add b 7 100 2\r\n41\r\n"},
    {"get b missing a\r\n", "END\r\n"},
    {"incr a 18446744073709551615\r\n"},  // wraps round
    {"get a\r\n", "END\r\n"},
    {"add full 0 100 20\r\n18446744073709551615\r\n"},
    {"incr full 1\r\n"},
    {"get full\r\n", "END\r\n"},  // keeps its length
    {"incr full 12\r\n"},
    {"get full\r\n", "END\r\n"},
    {"set text 0 100 3\r\nabc\r\n"},
    {"incr text 1\r\n"},
    {"incr a -1\r\n"},
    {"incr a x\r\n"},
    {"incr a\r\n"},
    {"incr\r\n"},
    {"get\r\n"},
    {"nonsense\r\n"},
    {"set a 0 0 3\r\n100\r\n"},
    {"incr a 900\r\n"},  // longer than before
    {"get a\r\n", "END\r\n"},
    {"delete a\r\n"},
    {"delete a\r\n"},
    {"get a\r\n", "END\r\n"},
    {"add gone 0 -1 1\r\n1\r\n"},  // born expired
    {"get gone\r\n", "END\r\n"},
    {"incr gone 1\r\n"},
    {"add gone 0 100 1\r\n2\r\n"},
    {"get " + std::string(251, 'k') + "\r\n"},
    {"incr " + std::string(251, 'k') + " 1\r\n"},
    {"incr b 1\nincr b 1\r\n", "43\r\n"},  // a line may end without CR
    {"incr b 1\r\nincr c 1\r\nget b c\r\n", "END\r\n"},
    {"add cut 0 100 4\r\n12", ""},
    {"34\r\n"},
    {"get cut\r\n", "END\r\n"},
};

class Model {
 public:
  std::string ask(const Turn& turn) {
    input_ += turn.command;
    std::string output;
    EXPECT_TRUE(memcached_.serve(input_, output));
    return output;
  }
  void pass(std::int64_t seconds) { now_ += seconds; }

 private:
  std::int64_t now_ = 1000;
  MemcachedModel memcached_{MemcachedModel::Setup{.seconds_now = [this] { return now_; }}};
  std::string input_;
};

TEST(MemcachedModel, answers_as_memcached_does) {
  process::Memcached memcached;
  process::TextClient real = memcached.client();
  Model model;
  for (const Turn& turn : kDialogue) {
    SCOPED_TRACE(turn.command);
    real.send(turn.command);
    const std::string expected = turn.ending.empty() ? std::string() : real.read_through(turn.ending);
    EXPECT_EQ(model.ask(turn), expected);
  }
}

TEST(MemcachedModel, forgets_a_counter_as_memcached_does_once_its_seconds_are_over) {
  process::Memcached memcached;
  process::TextClient real = memcached.client();
  Model model;
  const Turn add{"add short 0 1 1\r\n3\r\n"};
  EXPECT_EQ(model.ask(add), real.ask(add.command, "\r\n"));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (real.ask("get short\r\n", "END\r\n") != "END\r\n") {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  model.pass(1);
  for (const Turn& turn :
       {Turn{"get short\r\n", "END\r\n"}, Turn{"incr short 1\r\n"}, Turn{"add short 0 9 1\r\n1\r\n"}}) {
    EXPECT_EQ(model.ask(turn), real.ask(turn.command, turn.ending)) << turn.command;
  }
}

TEST(MemcachedModel, counts_what_it_evicts_and_tells_what_it_carried_out) {
  std::uint64_t told = 0;
  MemcachedModel memcached({.items_max = 2,
                            .seconds_now = [] { return 1; },
                            .counted = [&](std::string_view, std::uint64_t hits) { told += hits; }});
  std::string input = "add a 0 9 1\r\n2\r\nadd b 0 9 1\r\n3\r\nincr a 4\r\nadd c 0 9 1\r\n1\r\nget a b c\r\nstats\r\n";
  std::string output;
  ASSERT_TRUE(memcached.serve(input, output));
  EXPECT_EQ(told, 10U);
  EXPECT_EQ(output,
            "STORED\r\nSTORED\r\n6\r\nSTORED\r\nVALUE a 0 1\r\n6\r\nVALUE c 0 1\r\n1\r\nEND\r\n"
            "STAT curr_items 2\r\nSTAT evictions 1\r\nEND\r\n");
}

}  // namespace
}  // namespace popgate::simulation
