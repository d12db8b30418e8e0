// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/shard_server.h"

#include <utility>

namespace popgate::simulation {

class ShardServer::Client final : private StreamOwner {
 public:
  Client(std::unique_ptr<Stream> stream, MemcachedModel& memcached)
      : stream_(std::move(stream)), memcached_(memcached) {
    stream_->start(*this);
  }
  [[nodiscard]] bool is_gone() const { return stream_ == nullptr; }

 private:
  void stream_connected() override {}
  void stream_readable() override {
    for (std::string_view piece = stream_->peek(); !piece.empty(); piece = stream_->peek()) {
      input_.append(piece);
      stream_->consume(piece.size());
    }
    std::string output;
    const bool stays = memcached_.serve(input_, output);
    stream_->write(output);
    if (stays) return;
    stream_->flush();
    stream_.reset();
  }
  void stream_ended(const std::string&) override { stream_.reset(); }

  std::unique_ptr<Stream> stream_;
  MemcachedModel& memcached_;
  std::string input_;
};

ShardServer::ShardServer(Network& network, HostNumber host, std::string name, CountedFunction counted)
    : network_(network),
      host_(host),
      machine_(network.world(), std::move(name), {.booted = HostInstant(std::chrono::hours(1))}),
      random_(network.world().random_for("loop of " + machine_.name())),
      counted_(std::move(counted)) {}

ShardServer::~ShardServer() { kill(); }

void ShardServer::start() {
  POPGATE_ASSERT(!is_running());
  process_ = std::make_unique<Process>(network_.world(), machine_, random_);
  transport_ = std::make_unique<ModelTransport>(network_, *process_, host_);
  const auto seconds_now = [this] {
    return std::chrono::floor<std::chrono::seconds>(machine_.host_now()).time_since_epoch().count();
  };
  memcached_ = std::make_unique<MemcachedModel>(MemcachedModel::Setup{.seconds_now = seconds_now, .counted = counted_});
  const Result<SocketAddress> address = SocketAddress::resolve(address_of_host(host_), kPort);
  POPGATE_ASSERT(address.ok());
  auto listener = transport_->listen(*address, [this](std::unique_ptr<Stream> stream, const SocketAddress&) {
    std::erase_if(clients_, [](const auto& client) { return client->is_gone(); });
    clients_.push_back(std::make_unique<Client>(std::move(stream), *memcached_));
  });
  POPGATE_ASSERT(listener.ok());
  listener_ = *std::move(listener);
}

void ShardServer::kill() {
  clients_.clear();
  listener_.reset();
  memcached_.reset();
  transport_.reset();
  process_.reset();
}

}  // namespace popgate::simulation
