// SPDX-License-Identifier: Apache-2.0
// That the model's streams give what TCP gives, and no more: otherwise the simulation proves nothing.
#include <gtest/gtest.h>

#include "tests/simulation/model_transport.h"
#include "tests/simulation/tcp_end.h"

namespace popgate::simulation {
namespace {

using std::chrono::seconds;

constexpr HostNumber kClient = 0x0101;
constexpr HostNumber kServer = 0x0102;

SocketAddress server_address() {
  Result<SocketAddress> address = SocketAddress::resolve(address_of_host(kServer), 7000);
  EXPECT_TRUE(address.ok());
  return *address;
}

/// Keeps what comes over one stream.
class End final : public StreamOwner {
 public:
  explicit End(std::unique_ptr<Stream> taken) : stream(std::move(taken)) { stream->start(*this); }
  void stream_connected() override { connected = true; }
  void stream_readable() override {
    for (std::string_view piece = stream->peek(); !piece.empty(); piece = stream->peek()) {
      got.append(piece);
      stream->consume(piece.size());
    }
  }
  void stream_ended(const std::string& why) override { ended = why; }

  std::unique_ptr<Stream> stream;
  std::string got;
  std::string ended;
  bool connected = false;
};

/// A process of its own on each of two hosts.
class Side {
 public:
  Side(World& world, Network& network, HostNumber host)
      : machine_(world, address_of_host(host), {}),
        random_(world.random_for(address_of_host(host))),
        process_(std::make_unique<Process>(world, machine_, random_)),
        transport_(network, *process_, host) {}
  [[nodiscard]] Process& process() { return *process_; }
  [[nodiscard]] ModelTransport& transport() { return transport_; }

 private:
  Machine machine_;
  Random random_;
  std::unique_ptr<Process> process_;
  ModelTransport transport_;
};

class ModelNetwork : public testing::Test {
 protected:
  void serve() {
    auto listening = server_.transport().listen(server_address(), [this](std::unique_ptr<Stream> stream, const auto&) {
      accepted_.push_back(std::make_unique<End>(std::move(stream)));
    });
    ASSERT_TRUE(listening.ok());
    listener_ = *std::move(listening);
  }
  std::unique_ptr<End> dial() { return std::make_unique<End>(client_.transport().dial(server_address(), {})); }
  void run(microseconds duration) { world_.run_until(world_.now() + duration); }

  World world_{7};
  Network network_{world_};
  Side client_{world_, network_, kClient};
  Side server_{world_, network_, kServer};
  std::unique_ptr<Listener> listener_;
  std::vector<std::unique_ptr<End>> accepted_;
};

std::string numbered_lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += std::to_string(i) + "\n";
  return text;
}

TEST_F(ModelNetwork, bytes_arrive_once_and_in_order_whatever_happens_to_packets) {
  serve();
  network_.for_both(kClient, kServer, [](Path& path) {
    path = {.delay = milliseconds(20), .jitter = milliseconds(60), .loss = 0.2, .repeat = 0.3};
  });
  const auto client = dial();
  const std::string text = numbered_lines(20'000);
  client->stream->write(text);
  run(seconds(600));
  ASSERT_EQ(accepted_.size(), 1U);
  EXPECT_TRUE(client->connected);
  EXPECT_EQ(accepted_[0]->got, text);
  EXPECT_EQ(client->ended, "");
}

TEST_F(ModelNetwork, nobody_listening_refuses_at_once_and_a_cut_answers_nothing) {
  const auto refused = dial();
  run(milliseconds(10));
  EXPECT_EQ(refused->ended, "Connection refused");
  network_.path(kClient, kServer).cut = true;
  const auto lost = dial();
  run(seconds(60));
  EXPECT_EQ(lost->ended, "");
  run(seconds(10));  // 1 + 2 + 4 + 8 + 16 + 32 s
  EXPECT_EQ(lost->ended, "Connection timed out");
}

TEST_F(ModelNetwork, a_lost_syn_is_repeated_after_a_second) {
  serve();
  network_.path(kClient, kServer).cut = true;
  const auto client = dial();
  run(milliseconds(500));
  network_.path(kClient, kServer).cut = false;
  run(milliseconds(490));
  EXPECT_FALSE(client->connected);
  run(milliseconds(20));
  EXPECT_TRUE(client->connected);
}

TEST_F(ModelNetwork, what_a_reader_does_not_take_waits_at_the_writer) {
  serve();
  const auto client = dial();
  run(milliseconds(10));
  server_.process().pause();
  const std::string text(1024 * 1024, 'x');
  client->stream->write(text);
  run(seconds(5));
  const std::size_t kernels = TcpEnd::kSendBufferBytes + TcpEnd::kReceiveBufferBytes;
  EXPECT_EQ(client->stream->unsent_bytes(), text.size() - kernels);
  server_.process().resume();
  run(seconds(60));
  EXPECT_EQ(accepted_[0]->got, text);
  EXPECT_EQ(client->stream->unsent_bytes(), 0U);
}

TEST_F(ModelNetwork, what_the_kernel_was_given_travels_on_and_the_rest_was_received_by_nobody) {
  serve();
  auto client = dial();
  run(milliseconds(10));
  client->stream->write("given");
  client->stream->flush();
  client->stream->write("kept");
  EXPECT_EQ(client->stream->unsent_bytes(), 4U);
  client.reset();
  run(milliseconds(10));
  ASSERT_EQ(accepted_.size(), 1U);
  EXPECT_EQ(accepted_[0]->got, "given");
  EXPECT_EQ(accepted_[0]->ended, "closed by the other side");
}

TEST_F(ModelNetwork, an_end_that_is_gone_behind_a_cut_is_noticed_only_when_it_is_spoken_to) {
  serve();
  const auto client = dial();
  run(milliseconds(10));
  network_.for_both(kClient, kServer, [](Path& path) { path.cut = true; });
  accepted_.clear();
  listener_.reset();
  run(seconds(200));  // its FIN was given up
  network_.for_both(kClient, kServer, [](Path& path) { path.cut = false; });
  run(seconds(10));
  EXPECT_EQ(client->ended, "");
  client->stream->write("anybody?");
  run(milliseconds(10));
  EXPECT_EQ(client->ended, "Connection reset by peer");
}

TEST_F(ModelNetwork, a_close_with_unread_input_resets) {
  serve();
  const auto client = dial();
  run(milliseconds(10));
  server_.process().pause();
  client->stream->write("unread");
  run(milliseconds(10));
  accepted_.clear();
  run(milliseconds(10));
  EXPECT_EQ(client->ended, "Connection reset by peer");
}

TEST_F(ModelNetwork, a_slow_path_delays_by_its_rate) {
  serve();
  const auto client = dial();
  run(milliseconds(10));
  network_.path(kClient, kServer).bytes_per_second = 10'000;
  client->stream->write(std::string(5'000, 'x'));
  run(milliseconds(400));
  EXPECT_LT(accepted_[0]->got.size(), 5'000U);
  run(milliseconds(400));
  EXPECT_EQ(accepted_[0]->got.size(), 5'000U);
}

TEST(ModelProcess, timers_are_never_early_by_the_machines_clock_and_a_pause_makes_them_late) {
  World world(3);
  Machine machine(world, "m", {.booted = HostInstant(seconds(5)), .drift_ppm = -200});
  Random random = world.random_for("m");
  Process process(world, machine, random);
  std::vector<HostInstant> fired;
  Timer timer(process, [&] { fired.push_back(process.host_now()); });
  timer.start_every(milliseconds(100));
  world.run_until(ModelInstant(milliseconds(350)));
  ASSERT_EQ(fired.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_GE(fired[i], HostInstant(seconds(5)) + milliseconds(100) * (i + 1));
  process.pause();
  world.run_until(ModelInstant(seconds(2)));
  EXPECT_EQ(fired.size(), 3U);
  process.resume();
  world.run_until(ModelInstant(seconds(2) + milliseconds(50)));
  EXPECT_EQ(fired.size(), 4U);  // one for all that were missed
  world.run_until(ModelInstant(seconds(2) + milliseconds(150)));
  EXPECT_EQ(fired.size(), 5U);
}

}  // namespace
}  // namespace popgate::simulation
