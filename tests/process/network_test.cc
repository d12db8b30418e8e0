// SPDX-License-Identifier: Apache-2.0
#include "tests/process/network.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "tests/process/child_process.h"

namespace popgate::process {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint16_t kPort = 7000;  // in namespaces of their own

class NetworkOfTwo : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = Network::unavailable()) GTEST_SKIP() << "no network namespaces with TUN here: " << *reason;
    make(1);
  }
  void make(std::uint64_t seed) {
    network_ = std::make_unique<Network>(2, seed);
    network_->network_namespace(0).run_inside([&] { sender_ = FileDescriptor(socket(AF_INET, SOCK_DGRAM, 0)); });
    network_->network_namespace(1).run_inside([&] {
      receiver_ = FileDescriptor(socket(AF_INET, SOCK_DGRAM, 0));
      const int bytes = 4 * 1024 * 1024;
      setsockopt(receiver_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
      const sockaddr_in own = address(1);
      ASSERT_EQ(bind(receiver_.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
    });
  }
  [[nodiscard]] sockaddr_in address(std::size_t host) const {
    sockaddr_in inet{};
    inet.sin_family = AF_INET;
    inet.sin_port = htons(kPort);
    inet_pton(AF_INET, network_->address(host).c_str(), &inet.sin_addr);
    return inet;
  }
  void send(int number) {
    const sockaddr_in to = address(1);
    ASSERT_EQ(sendto(sender_.get(), &number, sizeof number, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to),
              static_cast<ssize_t>(sizeof number));
  }
  // What arrives until nothing has for a while.
  [[nodiscard]] std::vector<int> received(milliseconds patience = milliseconds(200)) {
    std::vector<int> numbers;
    pollfd readable{receiver_.get(), POLLIN, 0};
    while (poll(&readable, 1, static_cast<int>(patience.count())) == 1) {
      int number = -1;
      if (recv(receiver_.get(), &number, sizeof number, 0) == sizeof number) numbers.push_back(number);
    }
    return numbers;
  }
  // The queue of a TUN interface holds 500 packets.
  void send_paced(int count) {
    const Network::Counts before = network_->counts();
    for (int i = 0; i < count; ++i) {
      send(i);
      if (i % 100 == 99) {
        const auto fate = before.carried + before.dropped + static_cast<std::uint64_t>(i) + 1;
        ASSERT_TRUE(eventually([&] { return network_->counts().carried + network_->counts().dropped >= fate; }));
        poll(nullptr, 0, 5);
      }
    }
  }

  std::unique_ptr<Network> network_;
  FileDescriptor sender_;
  FileDescriptor receiver_;
};

TEST_F(NetworkOfTwo, carries_every_packet_in_order_in_clear_weather) {
  send_paced(1000);
  std::vector<int> expected(1000);
  for (int i = 0; i < 1000; ++i) expected[static_cast<std::size_t>(i)] = i;
  EXPECT_EQ(received(), expected);
}

// Of 1,000 packets at 30 % some 300 are lost, give or take 15 (one standard deviation).
TEST_F(NetworkOfTwo, loses_the_share_it_is_told_and_the_same_packets_for_the_same_seed) {
  std::vector<int> first;
  for (const int run : {0, 1}) {
    make(7);
    network_->between(0, 1, {.loss = 0.3});
    send_paced(1000);
    const std::vector<int> arrived = received();
    EXPECT_NEAR(static_cast<double>(arrived.size()), 700, 75);
    if (run == 0) first = arrived;
    EXPECT_EQ(arrived, first);
  }
}

TEST_F(NetworkOfTwo, delays_duplicates_and_lets_packets_overtake) {
  network_->between(0, 1, {.duplicated = 1, .delay = milliseconds(50), .jitter = milliseconds(20)});
  const auto begin = std::chrono::steady_clock::now();
  send_paced(100);
  EXPECT_EQ(received().size(), 200U);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(50));
  for (int i = 0; i < 100; ++i) send(i);
  const std::vector<int> arrived = received();
  EXPECT_FALSE(std::is_sorted(arrived.begin(), arrived.end()));
}

TEST_F(NetworkOfTwo, carries_nothing_while_it_is_cut) {
  network_->between(0, 1, {.cut = true});
  send(1);
  EXPECT_TRUE(received().empty());
  network_->between(0, 1, {});
  send(2);
  EXPECT_EQ(received(), std::vector<int>{2});
}

}  // namespace
}  // namespace popgate::process
