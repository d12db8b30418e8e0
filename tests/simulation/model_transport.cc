// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/model_transport.h"

#include <arpa/inet.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "tests/simulation/tcp_end.h"

namespace popgate::simulation {
namespace {

class ModelStream final : public Stream {
 public:
  ModelStream(Network& network, Process& process, HostNumber host, std::shared_ptr<OutputHighWater> high_water)
      : network_(network), process_(process), host_(host), high_water_(std::move(high_water)) {}
  ~ModelStream() override;
  ModelStream(const ModelStream&) = delete;
  ModelStream& operator=(const ModelStream&) = delete;

  void will_dial(Port to) { to_ = to; }
  void take_over(std::uint64_t end) { end_ = end; }

  void start(StreamOwner& owner) override;
  void write(std::string_view bytes) override;
  void flush() override { (void)hand_over(); }
  [[nodiscard]] std::size_t unsent_bytes() const override { return output_.size(); }
  [[nodiscard]] std::string_view peek() override { return input_; }
  void consume(std::size_t bytes) override { input_.erase(0, bytes); }

 private:
  void look_soon();
  void look();
  [[nodiscard]] bool hand_over();
  [[nodiscard]] bool take_input();

  Network& network_;
  Process& process_;
  HostNumber host_;
  std::shared_ptr<OutputHighWater> high_water_;
  std::optional<Port> to_;
  std::uint64_t end_ = 0;
  StreamOwner* owner_ = nullptr;
  std::string output_;
  std::string input_;
  bool connected_told_ = false;
  bool end_told_ = false;
  bool look_waits_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

ModelStream::~ModelStream() {
  *alive_ = false;
  if (TcpEnd* const end = network_.find(end_)) end->close();
}

void ModelStream::start(StreamOwner& owner) {
  owner_ = &owner;
  const auto on_change = [this, alive = alive_] {
    if (*alive) look_soon();
  };
  if (to_) end_ = network_.connect(host_, *to_, on_change);
  if (TcpEnd* const end = network_.find(end_)) end->on_change(on_change);
  look_soon();
}

void ModelStream::write(std::string_view bytes) {
  output_.append(bytes);
  high_water_->bytes = std::max(high_water_->bytes, output_.size());
  high_water_->write_bytes = std::max(high_water_->write_bytes, bytes.size());
  look_soon();
}

void ModelStream::look_soon() {
  if (look_waits_ || owner_ == nullptr) return;
  look_waits_ = true;
  process_.post([this, alive = alive_] {
    if (!*alive) return;
    look_waits_ = false;
    look();
  });
}

// What a turn of the loop finds: in this order, and the owner may destroy the stream in any of the calls.
void ModelStream::look() {
  const auto alive = alive_;
  TcpEnd* end = network_.find(end_);
  if (end_told_) return;
  if (end != nullptr && end->is_established() && !connected_told_) {
    connected_told_ = true;
    owner_->stream_connected();
    if (!*alive) return;
  }
  if (hand_over() && output_.size() <= kDrainedBytes) {
    owner_->stream_drained();
    if (!*alive) return;
  }
  if (take_input()) {
    owner_->stream_readable();
    if (!*alive) return;
  }
  end = network_.find(end_);
  if (end != nullptr && end->has_input()) return look_soon();
  if (end != nullptr && !end->is_dead() && !end->is_at_end()) return;
  end_told_ = true;
  if (end == nullptr) return owner_->stream_ended("Connection reset by peer");
  owner_->stream_ended(end->is_dead() ? end->death() : "closed by the other side");
}

// True when something was handed over.
bool ModelStream::hand_over() {
  TcpEnd* const end = network_.find(end_);
  if (end == nullptr || output_.empty()) return false;
  const std::size_t taken = end->write(output_);
  output_.erase(0, taken);
  return taken > 0;
}

bool ModelStream::take_input() {
  TcpEnd* const end = network_.find(end_);
  if (end == nullptr || !end->has_input()) return false;
  input_ += end->read(ModelTransport::kReadBytes);
  return true;
}

class ModelListener final : public Listener {
 public:
  ModelListener(Network& network, Port port, SocketAddress address, std::shared_ptr<bool> alive)
      : network_(network), port_(port), address_(address), alive_(std::move(alive)) {}
  ~ModelListener() override {
    *alive_ = false;
    network_.stop_listening(port_);
  }
  ModelListener(const ModelListener&) = delete;
  ModelListener& operator=(const ModelListener&) = delete;

  [[nodiscard]] const SocketAddress& address() const override { return address_; }
  [[nodiscard]] std::uint64_t failures() const override { return 0; }

 private:
  Network& network_;
  Port port_;
  SocketAddress address_;
  std::shared_ptr<bool> alive_;
};

// An accepted connection on its way to the process; when the process or its listener is gone by then, it is closed.
class Waiting {
 public:
  Waiting(Network& network, std::uint64_t end) : network_(network), end_(end) {}
  ~Waiting() {
    TcpEnd* const end = network_.find(end_);
    if (!taken_ && end != nullptr) end->close();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  [[nodiscard]] std::uint64_t take() {
    taken_ = true;
    return end_;
  }

 private:
  Network& network_;
  std::uint64_t end_;
  bool taken_ = false;
};

SocketAddress address_of(Network& network, std::uint64_t end_number) {
  const TcpEnd* const end = network.find(end_number);
  Result<SocketAddress> address = SocketAddress::resolve(address_of_host(end == nullptr ? 0 : end->remote_host()), 1);
  POPGATE_ASSERT(address.ok());
  return *address;
}

}  // namespace

std::unique_ptr<Stream> ModelTransport::dial(const SocketAddress& address, const std::string& /*name*/) {
  auto stream = std::make_unique<ModelStream>(network_, process_, host_, high_water_);
  stream->will_dial(port_of(address));
  return stream;
}

Result<std::unique_ptr<Listener>> ModelTransport::listen(const SocketAddress& address, AcceptFunction accepted) {
  const Port port = port_of(address);
  const auto alive = std::make_shared<bool>(true);
  const auto backlog = std::make_shared<std::size_t>(0);
  // The handshake may end after the listener has.
  const auto on_accept = [this, &network = network_, accepted = std::make_shared<AcceptFunction>(std::move(accepted)),
                          alive, backlog](std::uint64_t end) {
    const auto waiting = std::make_shared<Waiting>(network, end);
    if (!*alive || *backlog >= kListenBacklog) return;
    ++*backlog;
    process_.post([this, accepted, alive, waiting, backlog] {
      --*backlog;
      if (!*alive) return;
      const std::uint64_t number = waiting->take();
      auto stream = std::make_unique<ModelStream>(network_, process_, host_, high_water_);
      stream->take_over(number);
      (*accepted)(std::move(stream), address_of(network_, number));
    });
  };
  if (!network_.listen(port, on_accept)) {
    return Error{"cannot listen on " + address.text() + ": Address already in use"};
  }
  return std::unique_ptr<Listener>(std::make_unique<ModelListener>(network_, port, address, alive));
}

std::string address_of_host(HostNumber host) {
  return "127.0." + std::to_string(host / 256) + "." + std::to_string(host % 256);
}

Port port_of(const SocketAddress& address) {
  const auto* const ip = reinterpret_cast<const sockaddr_in*>(address.get());
  POPGATE_ASSERT(ip->sin_family == AF_INET);
  return {ntohl(ip->sin_addr.s_addr) & 0xFFFF, ntohs(ip->sin_port)};
}

}  // namespace popgate::simulation
