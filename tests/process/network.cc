// SPDX-License-Identifier: Apache-2.0
#include "tests/process/network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <queue>
#include <random>
#include <system_error>
#include <thread>

namespace popgate::process {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kSubnet = 0x0A4D0000;  // 10.77.0.0/24
constexpr std::uint32_t kNetmask = 0xFFFFFF00;
constexpr std::size_t kHostsMax = 250;
constexpr std::size_t kPacketBytesMax = 1500;
constexpr std::size_t kPacketsMax = 100'000;
constexpr char kInterface[] = "tun0";

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

in_addr address_of(std::size_t host) { return {htonl(kSubnet + static_cast<std::uint32_t>(host) + 1)}; }

std::string text_of(in_addr address) {
  char text[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, &address, text, sizeof text);
  return text;
}

ifreq named_request() {
  ifreq request{};
  std::strncpy(request.ifr_name, kInterface, IFNAMSIZ - 1);
  return request;
}

void put_address(ifreq& request, in_addr address) {
  sockaddr_in inet{};
  inet.sin_family = AF_INET;
  inet.sin_addr = address;
  std::memcpy(&request.ifr_addr, &inet, sizeof inet);
}

// The interface, in the namespace of the calling thread: its other end.
FileDescriptor open_tun(std::size_t host) {
  FileDescriptor tun(open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!tun.is_open()) fail("/dev/net/tun");
  ifreq request = named_request();
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  if (ioctl(tun.get(), TUNSETIFF, &request) != 0) fail("TUNSETIFF");
  const FileDescriptor any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  request = named_request();
  put_address(request, address_of(host));
  if (ioctl(any.get(), SIOCSIFADDR, &request) != 0) fail("SIOCSIFADDR");
  put_address(request, {htonl(kNetmask)});
  if (ioctl(any.get(), SIOCSIFNETMASK, &request) != 0) fail("SIOCSIFNETMASK");
  request = named_request();
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (ioctl(any.get(), SIOCSIFFLAGS, &request) != 0) fail("SIOCSIFFLAGS");
  return tun;
}

}  // namespace

class Network::Router {
 public:
  Router(std::size_t hosts, std::uint64_t seed);
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  struct Host {
    NetworkNamespace network_namespace;
    FileDescriptor tun;
  };
  [[nodiscard]] const std::vector<Host>& hosts() const { return hosts_; }
  void between(std::size_t one, std::size_t other, const Conditions& conditions) {
    const std::scoped_lock lock(mutex_);
    conditions_[one * hosts_.size() + other] = conditions_[other * hosts_.size() + one] = conditions;
  }
  [[nodiscard]] Counts counts() const {
    const std::scoped_lock lock(mutex_);
    return counts_;
  }

 private:
  struct Packet {
    Clock::time_point due;
    std::uint64_t number;  // those due at the same time stay in order
    std::size_t to;
    std::vector<char> bytes;
    friend bool operator<(const Packet& a, const Packet& b) {  // of a queue whose top is its greatest
      return std::tie(a.due, a.number) > std::tie(b.due, b.number);
    }
  };

  void run();
  void take_all(std::size_t from);
  void take(std::size_t from, const char* bytes, std::size_t count);
  void send_off(const Conditions& conditions, std::size_t to, const char* bytes, std::size_t count);
  void deliver_due();
  [[nodiscard]] bool happens(double share) {
    return share > 0 && std::uniform_real_distribution(0.0, 1.0)(random_) < share;
  }

  std::vector<Host> hosts_;
  FileDescriptor wake_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  mutable std::mutex mutex_;
  std::vector<Conditions> conditions_;  // under mutex_: [from * hosts + to]
  Counts counts_;                       // under mutex_
  std::mt19937_64 random_;
  std::priority_queue<Packet> under_way_;
  std::uint64_t packets_ = 0;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

Network::Router::Router(std::size_t hosts, std::uint64_t seed)
    : hosts_(hosts), conditions_(hosts * hosts), random_(seed) {
  for (std::size_t i = 0; i < hosts; ++i) {
    hosts_[i].network_namespace.run_inside([&] { hosts_[i].tun = open_tun(i); });
  }
  thread_ = std::thread([this] { run(); });
}

Network::Router::~Router() {
  ended_ = true;
  const std::uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof one);
  thread_.join();
}

void Network::Router::run() {
  std::vector<pollfd> watched{{wake_.get(), POLLIN, 0}};
  for (const Host& host : hosts_) watched.push_back({host.tun.get(), POLLIN, 0});
  while (!ended_) {
    timespec wait{1, 0};
    if (!under_way_.empty()) {
      const auto until = std::max(under_way_.top().due - Clock::now(), Clock::duration::zero());
      wait = {std::chrono::duration_cast<std::chrono::seconds>(until).count(),
              (until % std::chrono::seconds(1)).count()};
    }
    if (ppoll(watched.data(), watched.size(), &wait, nullptr) > 0) {
      for (std::size_t i = 0; i < hosts_.size(); ++i) {
        if ((watched[i + 1].revents & POLLIN) != 0) take_all(i);
      }
    }
    deliver_due();
  }
}

void Network::Router::take_all(std::size_t from) {
  constexpr int kTakenAtOnce = 64;  // of one host, so that none starves the others
  char packet[kPacketBytesMax];
  for (int i = 0; i < kTakenAtOnce; ++i) {
    const ssize_t bytes = read(hosts_[from].tun.get(), packet, sizeof packet);
    if (bytes <= 0) return;
    take(from, packet, static_cast<std::size_t>(bytes));
  }
}

// IPv4 between hosts; what else a kernel sends of its own accord (IPv6 solicitations) ends here.
void Network::Router::take(std::size_t from, const char* bytes, std::size_t count) {
  constexpr std::size_t kHeaderBytes = 20;
  constexpr std::size_t kDestination = 16;
  if (count < kHeaderBytes || (bytes[0] & 0xF0) != 0x40) return;
  std::uint32_t destination = 0;
  std::memcpy(&destination, bytes + kDestination, sizeof destination);
  const std::size_t to = ntohl(destination) - kSubnet - 1;
  if (to >= hosts_.size()) return;
  const std::scoped_lock lock(mutex_);
  const Conditions& conditions = conditions_[from * hosts_.size() + to];
  const bool lost = happens(conditions.loss);
  if (lost || conditions.cut) {
    ++counts_.dropped;
    return;
  }
  send_off(conditions, to, bytes, count);
  if (!happens(conditions.duplicated)) return;
  ++counts_.duplicated;
  send_off(conditions, to, bytes, count);
}

void Network::Router::send_off(const Conditions& conditions, std::size_t to, const char* bytes, std::size_t count) {
  if (under_way_.size() >= kPacketsMax) {
    ++counts_.overflowed;
    return;
  }
  std::chrono::microseconds late{0};
  if (conditions.jitter.count() > 0) {
    late = std::chrono::microseconds(random_() % static_cast<std::uint64_t>(conditions.jitter.count()));
  }
  ++counts_.carried;
  under_way_.push({Clock::now() + conditions.delay + late, packets_++, to, std::vector<char>(bytes, bytes + count)});
}

void Network::Router::deliver_due() {
  const Clock::time_point now = Clock::now();
  while (!under_way_.empty() && under_way_.top().due <= now) {
    const Packet& packet = under_way_.top();
    (void)!write(hosts_[packet.to].tun.get(), packet.bytes.data(), packet.bytes.size());
    under_way_.pop();
  }
}

std::optional<std::string> Network::unavailable() {
  try {
    const Network tried(1, 0);
  } catch (const std::system_error& error) {
    return error.what();
  }
  return std::nullopt;
}

Network::Network(std::size_t hosts, std::uint64_t seed) {
  if (hosts > kHostsMax) throw std::invalid_argument("too many hosts for one subnet");
  router_ = std::make_unique<Router>(hosts, seed);
}

Network::~Network() = default;

std::size_t Network::hosts() const { return router_->hosts().size(); }
std::string Network::address(std::size_t host) const { return text_of(address_of(host)); }
const NetworkNamespace& Network::network_namespace(std::size_t host) const {
  return router_->hosts()[host].network_namespace;
}

void Network::between(std::size_t one, std::size_t other, const Conditions& conditions) {
  router_->between(one, other, conditions);
}

void Network::among(std::size_t first, std::size_t count, const Conditions& conditions) {
  for (std::size_t one = first; one < first + count; ++one) {
    for (std::size_t other = one + 1; other < first + count; ++other) between(one, other, conditions);
  }
}

Network::Counts Network::counts() const { return router_->counts(); }

}  // namespace popgate::process
