// SPDX-License-Identifier: Apache-2.0
#include "tests/process/pop.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <stdexcept>

#include "tests/process/network.h"
#include "tests/process/text_client.h"

namespace popgate::process {
namespace {

constexpr char kSecret[] = "000102030405060708090a0b0c0d0e0f";

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

void write_file(const std::filesystem::path& path, const std::string& text, std::filesystem::perms mode) {
  std::ofstream(path) << text;
  std::filesystem::permissions(path, mode);
}

constexpr auto kOwnerOnly = std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;

int connect_unix(const std::filesystem::path& socket_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.native().size() >= sizeof address.sun_path) fail("socket path too long: " + socket_path.string());
  std::strncpy(address.sun_path, socket_path.c_str(), sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{.tv_sec = 10, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

std::string read_to_end(int fd) {
  std::string all;
  char buffer[65536];
  for (ssize_t bytes; (bytes = read(fd, buffer, sizeof buffer)) > 0;)
    all.append(buffer, static_cast<std::size_t>(bytes));
  return all;
}

// "Transfer-Encoding: chunked" undone.
std::string joined_chunks(const std::string& body) {
  std::string joined;
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t line_end = body.find("\r\n", at);
    const std::size_t bytes = std::stoul(body.substr(at, line_end - at), nullptr, 16);
    if (bytes == 0) break;
    joined += body.substr(line_end + 2, bytes);
    at = line_end + 2 + bytes + 2;
  }
  return joined;
}

// "pg1%3A..." as `lru_crawler metadump` prints keys.
std::string percent_decoded(const std::string& text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    decoded.push_back(static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16)));
    i += 2;
  }
  return decoded;
}

// A server that still cleans up after an earlier dump answers BUSY.
std::string dump_of(const Memcached& server) {
  for (;;) {
    TextClient client = server.client();
    const std::string first = client.ask("lru_crawler metadump all\r\n", "\n");  // a dump's lines have no \r
    if (first == "END\r\n") return "";
    if (!first.starts_with("BUSY")) return first + client.read_through("END\r\n");
    usleep(1000);
  }
}

// Adds the counters among a server's keys: names that end in a slot number.
void add_counter_keys(const Memcached& server, std::set<std::string>& keys) {
  std::istringstream lines(dump_of(server));
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("key=", 0) != 0) continue;
    const std::string key = percent_decoded(line.substr(4, line.find(' ') - 4));
    const std::string last = key.substr(key.rfind(':') + 1);
    if (last.find_first_not_of("0123456789") == std::string::npos) keys.insert(key);
  }
}

// Of those that exist.
std::uint64_t sum_of(const Memcached& server, const std::vector<std::string>& keys) {
  constexpr std::size_t kKeysInOneGet = 32;
  TextClient client = server.client();
  std::uint64_t sum = 0;
  for (std::size_t begin = 0; begin < keys.size(); begin += kKeysInOneGet) {
    std::string command = "get";
    for (std::size_t i = begin; i < std::min(begin + kKeysInOneGet, keys.size()); ++i) command += " " + keys[i];
    std::istringstream lines(client.ask(command + "\r\n", "END\r\n"));
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("VALUE ", 0) == 0 && std::getline(lines, line)) sum += std::stoull(line);
    }
  }
  return sum;
}

popgate_request get_request(const std::string& address, const std::string& path) {
  popgate_request request = POPGATE_REQUEST_INIT;
  request.method = "GET";
  request.method_bytes = 3;
  request.host = "www.example.com";
  request.host_bytes = std::strlen(request.host);
  request.path = path.data();
  request.path_bytes = path.size();
  if (popgate_parse_address(address.data(), address.size(), &request.client) != POPGATE_OK)
    fail("not an address: " + address);
  return request;
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  char path[] = "/dev/shm/popgate-test.XXXXXX";
  if (mkdtemp(path) == nullptr) fail("mkdtemp in /dev/shm failed");
  path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

AdminAnswer ask_admin(const std::filesystem::path& socket_path, const std::string& method, const std::string& target,
                      const std::string& body) {
  const int fd = connect_unix(socket_path);
  if (fd < 0) return {};
  const std::string request =
      method + " " + target +
      " HTTP/1.1\r\nHost: popgate\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
      body;
  if (write(fd, request.data(), request.size()) != static_cast<ssize_t>(request.size())) {
    close(fd);
    return {};
  }
  const std::string reply = read_to_end(fd);
  close(fd);
  const std::size_t head_end = reply.find("\r\n\r\n");
  if (head_end == std::string::npos) return {};
  AdminAnswer answer{.status = std::stoi(reply.substr(reply.find(' ') + 1)), .body = reply.substr(head_end + 4)};
  if (reply.substr(0, head_end).find("chunked") != std::string::npos) answer.body = joined_chunks(answer.body);
  return answer;
}

void Node::configure(const std::string& yaml) { write_file(config_file(), yaml, kOwnerOnly); }

std::string Node::config() const {
  std::ostringstream text;
  text << std::ifstream(config_file()).rdbuf();
  return text.str();
}

void Node::start() {
  if (!starts()) fail(name_ + " did not start:\n" + daemon_->output());
}

bool Node::starts() {
  std::vector<std::string> argv = under_;
  for (const std::string& word : {std::string(POPGATE_DAEMON), std::string("--config"), config_file().string()})
    argv.push_back(word);
  daemon_.emplace(argv, surroundings_);
  // A socket file may be left from a killed daemon: what counts is an answer.
  const bool answers =
      eventually([&] { return !daemon_->running() || ask_admin(admin_socket(), "GET", "/status").status == 200; });
  return answers && daemon_->running();
}

int Node::stop() { return daemon_->stop().value_or(-1); }

nlohmann::json Node::get(const std::string& target) const {
  const AdminAnswer answer = ask_admin(admin_socket(), "GET", target);
  if (answer.status != 200) fail(name_ + ": GET " + target + ": " + std::to_string(answer.status) + " " + answer.body);
  return nlohmann::json::parse(answer.body);
}

nlohmann::json Node::post(const std::string& target, const nlohmann::json& body) const {
  const AdminAnswer answer = ask_admin(admin_socket(), "POST", target, body.dump());
  if (answer.status != 200) fail(name_ + ": POST " + target + ": " + std::to_string(answer.status) + " " + answer.body);
  return nlohmann::json::parse(answer.body);
}

double Node::metric(const std::string& name) const {
  std::istringstream lines(ask_admin(admin_socket(), "GET", "/metrics").body);
  double sum = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool is_it = line.starts_with(name) && (line[name.size()] == ' ' || line[name.size()] == '{');
    if (is_it) sum += std::stod(line.substr(line.rfind(' ')));
  }
  return sum;
}

bool Node::ready() const { return ask_admin(admin_socket(), "GET", "/ready").status == 200; }

Pop::Pop(PopOptions options) : options_(std::move(options)) {
  write_file(folder_.path() / "secret", kSecret, kOwnerOnly);
  for (int i = 0; i < options_.shards; ++i) shards_.push_back(std::make_unique<Memcached>(shard_options()));
  for (int i = 0; i < options_.nodes; ++i) mesh_ports_.emplace_back();
  if (options_.proxy) {
    std::vector<NutcrackerServer> servers;
    for (std::size_t i = 0; i < shards_.size(); ++i)
      servers.push_back({"shard-" + std::to_string(i), shards_[i]->port()});
    proxy_.emplace(servers);
  }
  for (int i = 0; i < options_.nodes; ++i) {
    nodes_.push_back(std::make_unique<Node>("node-" + std::to_string(i), folder_.path()));
    std::filesystem::create_directories(folder_.path() / nodes_.back()->name() / "state");
    if (options_.network != nullptr) {
      const auto host = static_cast<std::size_t>(i);
      nodes_.back()->surroundings().network_namespace = options_.network->network_namespace(host).descriptor();
    }
  }
  if (has_tls()) make_certificates();
  configure_rules(options_.rules);
  if (options_.start) start();
}

void Pop::start() {
  for (const auto& node : nodes_) node->start();
  for (const auto& node : nodes_) {
    if (!eventually([&] { return node->ready(); })) fail(node->name() + " is not ready:\n" + node->process().output());
  }
}

// On a network all shards run on the host after the nodes'.
Memcached::Options Pop::shard_options() const {
  Memcached::Options options{.megabytes = options_.shard_megabytes, .arguments = options_.shard_arguments};
  if (options_.network == nullptr) return options;
  const auto host = static_cast<std::size_t>(options_.nodes);
  options.network_namespace = options_.network->network_namespace(host).descriptor();
  options.address = options_.network->address(host);
  return options;
}

// Off the loopback interface the mesh insists on TLS.
void Pop::make_certificates() const {
  std::vector<std::string> argv{POPGATE_MAKE_CERTS, certificates().string(), "test"};
  for (const auto& node : nodes_) argv.push_back(node->name());
  ChildProcess maker(argv);
  if (maker.wait_exit(std::chrono::seconds(60)) != 0) fail("make-certs: " + maker.output());
}

std::string Pop::tls_of(std::size_t index) const {
  const std::string folder = certificates().string() + "/";
  const std::string& name = nodes_[index]->name();
  return "  tls: {certificate: " + folder + name + ".pem, private_key: " + folder + name + ".key, ca: " + folder +
         "ca.pem}\n";
}

std::string Pop::address_of(std::size_t host) const {
  return options_.network != nullptr ? options_.network->address(host) : "127.0.0.1";
}

void Pop::configure_rules(const std::string& rules) {
  for (std::size_t i = 0; i < nodes_.size(); ++i) nodes_[i]->configure(config_of(i, rules));
}

std::string Pop::config_of(std::size_t index, const std::string& rules) const {
  std::ostringstream yaml;
  const std::string folder = (folder_.path() / nodes_[index]->name()).string();
  yaml << "node: " << nodes_[index]->name() << "\npop: test\nrun_dir: " << folder << "\nstate_dir: " << folder
       << "/state\n"
       << "hash_secret_file: " << (folder_.path() / "secret").string() << "\n"
       << options_.more;
  if (!shards_.empty()) {
    yaml << "counters:\n  shards:\n";
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      yaml << "    - {name: shard-" << i << ", address: \"" << address_of(nodes_.size()) << ":" << shards_[i]->port()
           << "\"}\n";
    }
    if (proxy_) yaml << "  proxy: 127.0.0.1:" << proxy_->port() << "\n";
  }
  if (nodes_.size() > 1) {
    yaml << "mesh:\n  listen: " << address_of(index) << ":" << mesh_ports_[index].number() << "\n";
    if (has_tls()) yaml << tls_of(index);
    yaml << "  peers:\n";
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (i != index)
        yaml << "    - {node: node-" << i << ", address: \"" << address_of(i) << ":" << mesh_ports_[i].number()
             << "\"}\n";
    }
  }
  yaml << "rules:\n" << rules;
  return yaml.str();
}

// A dump skips an item that a command holds at that moment: what one dump misses another, or an earlier one, has.
std::uint64_t Pop::counters_sum() {
  constexpr int kDumps = 3;
  std::uint64_t sum = 0;
  for (const auto& shard : shards_) {
    std::set<std::string>& keys = counter_keys_[shard->port()];
    for (int dump = 0; dump < kDumps; ++dump) add_counter_keys(*shard, keys);
    sum += sum_of(*shard, {keys.begin(), keys.end()});
  }
  return sum;
}

Worker::Worker(const std::filesystem::path& socket, std::uint32_t ring_slots) {
  popgate_options options = POPGATE_OPTIONS_INIT;
  options.ring_slots = ring_slots;
  if (popgate_open(socket.c_str(), &options, &client_) != POPGATE_OK) fail("popgate_open failed");
}

bool Worker::request(const std::string& address, const std::string& path) {
  const popgate_request request = get_request(address, path);
  return popgate_check(client_, &request, nullptr) == POPGATE_BLOCK;
}

bool Worker::is_blocked(const std::string& address, const std::string& path) {
  const popgate_request request = get_request(address, path);
  return popgate_peek(client_, &request, nullptr) == POPGATE_BLOCK;
}

bool Worker::attach() {
  return eventually([&] {
    tick();
    return statistics().attached == 1;
  });
}

popgate_statistics Worker::statistics() const {
  popgate_statistics statistics = POPGATE_STATISTICS_INIT;
  (void)popgate_get_statistics(client_, &statistics);
  return statistics;
}

}  // namespace popgate::process
