// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/eviction_watch.h"
#include "daemon/socket_transport.h"

#include <gtest/gtest.h>

#include "daemon/config.h"
#include "tests/daemon/count/counting_node.h"
#include "tests/process/text_client.h"

namespace popgate {
namespace {

/// More than two megabytes into a memcached of two.
void overfill(const process::Memcached& memcached) {
  process::TextClient client(memcached.port());
  const std::string value(10'000, 'x');
  std::string sets;
  std::string replies;
  for (int i = 0; i < 600; ++i) {
    sets += "set filler-" + std::to_string(i) + " 0 0 10000\r\n" + value + "\r\n";
    replies += "STORED\r\n";
  }
  ASSERT_EQ(client.ask(sets, replies), replies);
}

TEST(EvictionWatch, tells_what_memcached_evicted_since_the_last_answer) {
  process::Memcached memcached({.megabytes = 2});
  const auto address = SocketAddress::resolve(Endpoint{"127.0.0.1", memcached.port(), ""});
  ASSERT_TRUE(address) << address.error();
  EventLoop loop;
  SocketTransport sockets(loop);
  std::uint64_t evicted = 0;
  int answers = 0;
  EvictionWatch watch(loop, sockets, *address, std::chrono::seconds(5),
                      {.evicted =
                           [&](std::uint64_t items) {
                             evicted += items;
                             ++answers;
                           },
                       .evicted_before = [] { ADD_FAILURE() << "nothing was"; },
                       .sees = [](bool sees) { EXPECT_TRUE(sees); }});
  ASSERT_TRUE(run_until(loop, [&] { return !watch.is_asking(); }));
  EXPECT_EQ(evicted, 0u);
  overfill(memcached);
  watch.ask();
  ASSERT_TRUE(run_until(loop, [&] { return !watch.is_asking(); }));
  EXPECT_GT(evicted, 0u);
  watch.ask();
  ASSERT_TRUE(run_until(loop, [&] { return !watch.is_asking(); }));
  EXPECT_EQ(answers, 1) << "nothing new was evicted";
}

TEST(EvictionWatch, a_server_that_is_gone_or_restarts_is_no_eviction) {
  process::Memcached memcached({.megabytes = 2});
  const auto address = SocketAddress::resolve(Endpoint{"127.0.0.1", memcached.port(), ""});
  ASSERT_TRUE(address) << address.error();
  EventLoop loop;
  SocketTransport sockets(loop);
  std::uint64_t evicted = 0;
  int before = 0;
  overfill(memcached);
  EvictionWatch watch(loop, sockets, *address, std::chrono::seconds(5),
                      {.evicted = [&](std::uint64_t items) { evicted += items; },
                       .evicted_before = [&] { ++before; },
                       .sees = [](bool) {}});
  ASSERT_TRUE(run_until(loop, [&] { return !watch.is_asking(); }));
  EXPECT_EQ(evicted, 0u) << "what was evicted before is not news";
  EXPECT_EQ(before, 1) << "but nobody knows how long before";
  memcached.kill();
  watch.ask();
  ASSERT_TRUE(run_until(loop, [&] { return !watch.is_asking(); }));
  memcached.start();
  watch.ask();
  ASSERT_TRUE(run_until(loop, [&] { return !watch.is_asking(); }));
  EXPECT_EQ(evicted, 0u);
}

// Nobody may take silence for "nothing was evicted".
TEST(EvictionWatch, says_when_it_cannot_see_and_when_it_can_again) {
  process::Memcached memcached({.megabytes = 2});
  const auto address = SocketAddress::resolve(Endpoint{"127.0.0.1", memcached.port(), ""});
  ASSERT_TRUE(address) << address.error();
  EventLoop loop;
  SocketTransport sockets(loop);
  bool sees = false;
  EvictionWatch watch(loop, sockets, *address, milliseconds(20),
                      {.evicted = [](std::uint64_t) {}, .evicted_before = [] {}, .sees = [&](bool now) { sees = now; }},
                      milliseconds(50));
  ASSERT_TRUE(run_until(loop, [&] { return sees; }));
  memcached.freeze();
  ASSERT_TRUE(run_until(loop, [&] { return !sees; }));
  memcached.thaw();
  ASSERT_TRUE(run_until(loop, [&] { return sees; }));
}

}  // namespace
}  // namespace popgate
