// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/proxy_server.h"

#include <algorithm>
#include <map>
#include <utility>

namespace popgate::simulation {
namespace {

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    if (end > 0) words.emplace_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

}  // namespace

// One shard, as the proxy reaches it: dialled when there is something to ask.
class ProxyServer::Server final : private StreamOwner {
 public:
  Server(ProxyServer& proxy, SocketAddress address)
      : proxy_(proxy), address_(address), clock_(proxy.process_, [this] { look_at_clock(); }) {
    clock_.start_every(kTimeoutPoll);
  }

  void ask(const SharedRequest& request, const std::string& text) {
    if (stream_ == nullptr) {
      stream_ = proxy_.transport_.dial(address_, {});
      stream_->start(*this);
    }
    stream_->write(text);
    asked_.push_back({request, proxy_.process_.host_now()});
  }

 private:
  struct Asked {
    SharedRequest request;
    HostInstant at;
  };

  void stream_connected() override {}
  void stream_readable() override {
    for (std::string_view piece = stream_->peek(); !piece.empty(); piece = stream_->peek()) {
      input_.append(piece);
      stream_->consume(piece.size());
    }
    while (!asked_.empty() && take_reply(*asked_.front().request)) asked_.pop_front();
    proxy_.answered();
  }
  void stream_ended(const std::string& why) override {
    fail(why == "Connection refused" ? why : "Connection reset by peer");
  }

  // One reply in front of the input: a line, or everything up to the END of a get.
  bool take_reply(Request& request) {
    const bool is_values = request.is_get && input_.starts_with("VALUE ");
    const std::size_t end = is_values ? input_.find("\r\nEND\r\n") : input_.find("\r\n");
    if (end == std::string::npos) return false;
    if (request.is_get) {
      const bool is_empty = input_.starts_with("END\r\n");
      if (is_values) request.reply += input_.substr(0, end + 2);
      if (!is_values && !is_empty) request.error = input_.substr(0, end);
    } else {
      request.reply = input_.substr(0, end + 2);
    }
    input_.erase(0, is_values ? end + 7 : end + 2);
    --request.pieces_open;
    return true;
  }

  void look_at_clock() {
    if (!asked_.empty() && proxy_.process_.host_now() - asked_.front().at > kTimeout) fail("Connection timed out");
  }

  // What was sent may be carried out all the same.
  void fail(const std::string& why) {
    stream_.reset();
    input_.clear();
    for (const Asked& asked : std::exchange(asked_, {})) {
      asked.request->error = "SERVER_ERROR " + why;
      --asked.request->pieces_open;
    }
    proxy_.answered();
  }

  ProxyServer& proxy_;
  SocketAddress address_;
  std::unique_ptr<Stream> stream_;
  std::string input_;
  std::deque<Asked> asked_;
  Timer clock_;
};

class ProxyServer::Client final : private StreamOwner {
 public:
  Client(ProxyServer& proxy, std::unique_ptr<Stream> stream) : proxy_(proxy), stream_(std::move(stream)) {
    stream_->start(*this);
  }
  [[nodiscard]] bool is_gone() const { return stream_ == nullptr; }

  void answer() {
    while (stream_ != nullptr && !requests_.empty() && requests_.front()->pieces_open == 0) {
      const Request& request = *requests_.front();
      stream_->write(!request.error.empty() ? request.error + "\r\n"
                                            : request.reply + (request.is_get ? "END\r\n" : ""));
      requests_.pop_front();
    }
  }

 private:
  void stream_connected() override {}
  void stream_ended(const std::string&) override { stream_.reset(); }
  void stream_readable() override {
    for (std::string_view piece = stream_->peek(); !piece.empty(); piece = stream_->peek()) {
      input_.append(piece);
      stream_->consume(piece.size());
    }
    while (take_request()) {
    }
    answer();
  }

  bool take_request() {
    const std::size_t line_end = input_.find("\r\n");
    if (line_end == std::string::npos) return false;
    const std::vector<std::string> words = words_of(std::string_view(input_).substr(0, line_end));
    POPGATE_ASSERT(words.size() >= 2);  // its clients are the daemons of the model
    std::size_t bytes = line_end + 2;
    if (words[0] == "add" || words[0] == "set") bytes += std::stoul(words[4]) + 2;
    if (input_.size() < bytes) return false;
    const std::string text = input_.substr(0, bytes);
    input_.erase(0, bytes);
    const auto request = std::make_shared<Request>();
    requests_.push_back(request);
    request->is_get = words[0] == "get";
    if (!request->is_get) {
      request->pieces_open = 1;
      proxy_.forward(proxy_.shard_of(words[1]), request, text);
      return true;
    }
    std::map<ShardIndex, std::string> gets;
    for (std::size_t i = 1; i < words.size(); ++i) {
      std::string& get = gets[proxy_.shard_of(words[i])];
      get += (get.empty() ? "get " : " ") + words[i];
    }
    request->pieces_open = gets.size();
    for (const auto& [shard, get] : gets) proxy_.forward(shard, request, get + "\r\n");
    return true;
  }

  ProxyServer& proxy_;
  std::unique_ptr<Stream> stream_;
  std::string input_;
  std::deque<SharedRequest> requests_;
};

namespace {

Placement placement_of(const std::vector<ShardConfig>& shards) {
  Result<Placement> placement = Placement::make(shards);
  POPGATE_ASSERT(placement.ok());
  return *std::move(placement);
}

}  // namespace

ProxyServer::ProxyServer(Network& network, HostNumber host, const std::vector<ShardConfig>& shards)
    : machine_(network.world(), "proxy at " + address_of_host(host), {}),
      random_(network.world().random_for("loop of " + machine_.name())),
      process_(network.world(), machine_, random_),
      transport_(network, process_, host),
      placement_(placement_of(shards)) {
  for (const ShardConfig& shard : shards) {
    const Result<SocketAddress> address = SocketAddress::resolve(shard.address);
    POPGATE_ASSERT(address.ok());
    servers_.push_back(std::make_unique<Server>(*this, *address));
  }
  const Result<SocketAddress> own = SocketAddress::resolve(address_of_host(host), kPort);
  POPGATE_ASSERT(own.ok());
  auto listener = transport_.listen(*own, [this](std::unique_ptr<Stream> stream, const SocketAddress&) {
    std::erase_if(clients_, [](const auto& client) { return client->is_gone(); });
    clients_.push_back(std::make_unique<Client>(*this, std::move(stream)));
  });
  POPGATE_ASSERT(listener.ok());
  listener_ = *std::move(listener);
}

ProxyServer::~ProxyServer() = default;

// By what stands between the braces, as nutcracker's hash_tag: "{}" has it.
ShardIndex ProxyServer::shard_of(std::string_view key) const {
  const std::size_t begin = key.find('{');
  const std::size_t end = key.find('}', begin == std::string_view::npos ? 0 : begin);
  const bool tagged = begin != std::string_view::npos && end != std::string_view::npos && end > begin + 1;
  return placement_.shard_of(tagged ? key.substr(begin + 1, end - begin - 1) : key);
}

void ProxyServer::forward(ShardIndex shard, const SharedRequest& request, const std::string& text) {
  servers_[shard]->ask(request, text);
}

void ProxyServer::answered() {
  for (const auto& client : clients_) client->answer();
}

}  // namespace popgate::simulation
