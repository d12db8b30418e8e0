// SPDX-License-Identifier: Apache-2.0
//
// The worker socket spoken to by hand: what a worker that is old, broken or hostile may send.
#include "daemon/collect/workers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <fstream>

#include "libclient/record/hit_ring.h"
#include "tests/libclient/daemon_side.h"

namespace popgate {
namespace {

class WorkersTest : public testing::Test {
 protected:
  WorkersTest()
      : path_(directory_.file("workers.sock")),
        ledger_(Ledger::in_memory()),
        rule_(*ledger_->number_for(1)),
        table_(read_only_file(std::vector<std::byte>(100))),
        rules_(read_only_file(std::vector<std::byte>(200))) {}

  void start(std::uint32_t workers_max = 8, bool with_offer = true) {
    Workers::Options options;
    options.socket_path = path_;
    options.socket_mode = 0660;
    options.workers_max = workers_max;
    auto workers = Workers::open(loop_, options, *ledger_, [this](const Hit&, PopInstant) { ++hits_; });
    ASSERT_TRUE(workers.ok()) << workers.error();
    workers_ = std::move(*workers);
    if (!with_offer) return;
    ASSERT_TRUE(workers_->offer(table_.get(), 100, rules_.get(), 200).ok());
  }
  [[nodiscard]] FileDescriptor connect() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    FileDescriptor fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return fd;
  }
  [[nodiscard]] FileDescriptor greet(const HitRing& ring) const {
    FileDescriptor fd = connect();
    const int descriptors[] = {ring.file_descriptor()};
    EXPECT_EQ(send_attach(fd.get(), AttachMessage{}, descriptors), AttachSent::kSent);
    return fd;
  }
  [[nodiscard]] bool pump_until(const std::function<bool()>& condition) {
    const HostInstant deadline = HostClock::now() + std::chrono::seconds(10);
    while (!condition()) {
      if (HostClock::now() > deadline) return false;
      event_base_loop(loop_.base(),
                      EVLOOP_ONCE | EVLOOP_NONBLOCK);  // one turn: NONBLOCK alone goes on while timers are due
      usleep(100);
    }
    return true;
  }
  // What comes next over the connection; kNothing when nothing comes in ten seconds.
  AttachReceived receive(const FileDescriptor& fd, AttachMessage& message, AttachDescriptors& descriptors) {
    AttachReceived received = AttachReceived::kNothing;
    const char* fault = nullptr;
    (void)pump_until([&] {
      received = receive_attach(fd.get(), message, descriptors, fault);
      return received != AttachReceived::kNothing;
    });
    return received;
  }
  void expect_refusal(const FileDescriptor& fd, const std::string& reason) {
    AttachMessage message;
    AttachDescriptors descriptors;
    ASSERT_EQ(receive(fd, message, descriptors), AttachReceived::kMessage);
    EXPECT_EQ(message.kind, AttachKind::kRefused);
    EXPECT_NE(std::string(message.reason).find(reason), std::string::npos) << message.reason;
    EXPECT_EQ(receive(fd, message, descriptors), AttachReceived::kEnd);
  }
  void expect_message(const FileDescriptor& fd, AttachKind kind) {
    AttachMessage message;
    AttachDescriptors descriptors;
    ASSERT_EQ(receive(fd, message, descriptors), AttachReceived::kMessage);
    EXPECT_EQ(message.kind, kind);
    EXPECT_EQ(message.rules_bytes, 200U);
    EXPECT_EQ(message.table_bytes, kind == AttachKind::kWelcome ? 100U : 0U);
    for (std::size_t i = 0; i < descriptors.count; ++i) {
      EXPECT_EQ(fcntl(descriptors.items[i].get(), F_GETFL) & O_ACCMODE, O_RDONLY);
    }
  }
  [[nodiscard]] double figure(std::string_view name) const {
    double value = -1;
    workers_->visit([&](const Metric& metric) {
      if (metric.name == name) value = metric.value;
    });
    return value;
  }

  TemporaryDirectory directory_;
  std::string path_;
  EventLoop loop_;
  std::unique_ptr<Ledger> ledger_;
  RuleNumber rule_;
  FileDescriptor table_;
  FileDescriptor rules_;
  std::unique_ptr<Workers> workers_;
  std::uint64_t hits_ = 0;
};

TEST_F(WorkersTest, the_socket_has_the_configured_mode_whatever_the_umask) {
  const mode_t before = umask(0077);
  start();
  umask(before);
  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0660U);
  workers_.reset();
  EXPECT_NE(stat(path_.c_str(), &status), 0) << "and goes away with the daemon";
}

TEST_F(WorkersTest, a_dead_daemons_socket_is_replaced_and_a_live_ones_is_not) {
  {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    const FileDescriptor dead(socket(AF_UNIX, SOCK_SEQPACKET, 0));
    ASSERT_EQ(bind(dead.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  start();
  Workers::Options options;
  options.socket_path = path_;
  const auto second = Workers::open(loop_, options, *ledger_, {});
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().find("another daemon listens"), std::string::npos) << second.error();
  EXPECT_NE(second.error().find(path_), std::string::npos);
  const FileDescriptor still_there = connect();
}

TEST_F(WorkersTest, a_file_that_is_no_socket_and_a_path_too_long_are_refused) {
  std::ofstream(path_) << "precious";
  Workers::Options options;
  options.socket_path = path_;
  auto workers = Workers::open(loop_, options, *ledger_, {});
  ASSERT_FALSE(workers.ok());
  EXPECT_NE(workers.error().find("not a socket"), std::string::npos);
  options.socket_path = "/" + std::string(107, 'x');
  workers = Workers::open(loop_, options, *ledger_, {});
  ASSERT_FALSE(workers.ok());
  EXPECT_NE(workers.error().find("allowed: 1 to 107"), std::string::npos) << workers.error();
}

TEST_F(WorkersTest, a_worker_is_welcomed_with_read_only_descriptors_and_told_of_new_rules) {
  start();
  HitRing ring;
  ASSERT_TRUE(ring.create(kRingSlotsMin, "w"));
  const FileDescriptor worker = greet(ring);
  expect_message(worker, AttachKind::kWelcome);
  ASSERT_TRUE(workers_->offer_rules(rules_.get(), 200).ok());
  expect_message(worker, AttachKind::kRules);
  ASSERT_TRUE(workers_->offer(table_.get(), 100, rules_.get(), 200).ok());
  expect_message(worker, AttachKind::kWelcome);
  ASSERT_EQ(workers_->status().size(), 1U);
  EXPECT_EQ(workers_->status()[0].name, "w");
  EXPECT_EQ(workers_->status()[0].pid, getpid());
  EXPECT_EQ(workers_->status()[0].uid, getuid());
}

TEST_F(WorkersTest, a_worker_that_comes_before_the_first_offer_waits_for_it_and_its_hits_count) {
  start(8, false);
  HitRing ring;
  ASSERT_TRUE(ring.create(kRingSlotsMin, "w"));
  const FileDescriptor worker = greet(ring);
  (void)ring.record({{1, 1}, 0, rule_, 1});
  EXPECT_TRUE(pump_until([&] { return hits_ == 1; }));
  AttachMessage message;
  AttachDescriptors descriptors;
  const char* fault = nullptr;
  EXPECT_EQ(receive_attach(worker.get(), message, descriptors, fault), AttachReceived::kNothing);
  ASSERT_TRUE(workers_->offer(table_.get(), 100, rules_.get(), 200).ok());
  expect_message(worker, AttachKind::kWelcome);
}

TEST_F(WorkersTest, one_worker_too_many_is_refused_with_the_limit) {
  start(2);
  HitRing rings[3];
  std::vector<FileDescriptor> workers;
  for (HitRing& ring : rings) {
    ASSERT_TRUE(ring.create(kRingSlotsMin, ""));
    workers.push_back(greet(ring));
  }
  expect_message(workers[0], AttachKind::kWelcome);
  expect_message(workers[1], AttachKind::kWelcome);
  expect_refusal(workers[2], "workers_max (2)");
  EXPECT_EQ(figure("popgate_collect_workers_refused"), 1);
  workers[0].reset();
  EXPECT_TRUE(pump_until([&] { return workers_->status().size() == 1; }));
  HitRing another;
  ASSERT_TRUE(another.create(kRingSlotsMin, ""));
  expect_message(greet(another), AttachKind::kWelcome);
}

TEST_F(WorkersTest, messages_that_cannot_be_understood_are_refused_with_the_reason) {
  start();
  HitRing ring;
  ASSERT_TRUE(ring.create(kRingSlotsMin, ""));
  const int descriptors[] = {ring.file_descriptor(), ring.file_descriptor()};
  const auto send = [&](const AttachMessage& message, std::size_t count) {
    FileDescriptor fd = connect();
    EXPECT_EQ(send_attach(fd.get(), message, std::span(descriptors).first(count)), AttachSent::kSent);
    return fd;
  };
  AttachMessage message;
  message.version = 2;
  expect_refusal(send(message, 1), "a foreign version");
  message = {};
  message.magic = 1;
  expect_refusal(send(message, 1), "not a popgate message");
  message = {};
  message.kind = static_cast<AttachKind>(9);
  expect_refusal(send(message, 0), "a message of unknown kind");
  message = {};
  expect_refusal(send(message, 0), "a wrong number of descriptors");
  expect_refusal(send(message, 2), "a wrong number of descriptors");
  message.kind = AttachKind::kRules;
  expect_refusal(send(message, 1), "a message out of turn");
  for (const std::size_t bytes : {std::size_t{1}, kAttachMessageBytes - 1, kAttachMessageBytes + 1}) {
    const FileDescriptor fd = connect();
    message = {};
    std::vector<char> raw(bytes);
    std::memcpy(raw.data(), &message, std::min(bytes, sizeof message));
    ASSERT_EQ(::send(fd.get(), raw.data(), bytes, 0), static_cast<ssize_t>(bytes));
    expect_refusal(fd, "a message of unknown length");
  }
  EXPECT_TRUE(workers_->status().empty());
  EXPECT_TRUE(pump_until([&] { return figure("popgate_collect_workers") == 0; }));
}

TEST_F(WorkersTest, a_file_that_is_no_ring_is_refused_and_a_ring_is_attached_once) {
  start();
  const FileDescriptor fd = connect();
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  const int descriptors[] = {null};
  ASSERT_EQ(send_attach(fd.get(), AttachMessage{}, descriptors), AttachSent::kSent);
  expect_refusal(fd, "not a memfd");
  close(null);
  HitRing ring;
  ASSERT_TRUE(ring.create(kRingSlotsMin, ""));
  const FileDescriptor first = greet(ring);
  expect_message(first, AttachKind::kWelcome);
  expect_refusal(greet(ring), "attached already");
  EXPECT_EQ(workers_->status().size(), 1U);
}

TEST_F(WorkersTest, a_second_hello_ends_the_attachment_and_the_ring_is_drained) {
  start();
  HitRing ring;
  ASSERT_TRUE(ring.create(kRingSlotsMin, ""));
  const FileDescriptor worker = greet(ring);
  expect_message(worker, AttachKind::kWelcome);
  for (int i = 0; i < 500; ++i) (void)ring.record({{1, 1}, 0, rule_, 1});
  const int descriptors[] = {ring.file_descriptor()};
  ASSERT_EQ(send_attach(worker.get(), AttachMessage{}, descriptors), AttachSent::kSent);
  expect_refusal(worker, "out of turn");
  EXPECT_TRUE(pump_until([&] { return workers_->status().empty(); }));
  EXPECT_EQ(hits_, 500U);
}

TEST_F(WorkersTest, a_ring_that_goes_on_filling_after_its_worker_left_is_let_go) {
  start();
  HitRing ring;
  ASSERT_TRUE(ring.create(kRingSlotsDefault, ""));
  FileDescriptor worker = greet(ring);
  expect_message(worker, AttachKind::kWelcome);
  worker.reset();
  EXPECT_TRUE(pump_until([&] {
    while (ring.record({{1, 1}, 0, rule_, 1})) {  // always more than a turn takes
    }
    return workers_->status().empty();
  }));
}

TEST_F(WorkersTest, a_worker_that_does_not_read_gets_the_latest_rules_once_it_does) {
  start();
  HitRing ring;
  ASSERT_TRUE(ring.create(kRingSlotsMin, ""));
  const FileDescriptor worker = greet(ring);
  ASSERT_TRUE(pump_until([&] { return workers_->status().size() == 1; }));
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(workers_->offer_rules(rules_.get(), 200).ok());
  const FileDescriptor last = read_only_file(std::vector<std::byte>(201));
  ASSERT_TRUE(workers_->offer_rules(last.get(), 201).ok());
  AttachMessage message;
  AttachDescriptors descriptors;
  int messages = 0;
  do {
    ASSERT_EQ(receive(worker, message, descriptors), AttachReceived::kMessage);
    ++messages;
  } while (message.rules_bytes != 201);
  EXPECT_LT(messages, 5002) << "its socket buffer never filled up: the test does not see what it is for";
}

TEST_F(WorkersTest, everything_that_waits_is_taken_before_a_daemon_stops) {
  start();
  HitRing rings[2];
  std::vector<FileDescriptor> workers;
  for (HitRing& ring : rings) {
    ASSERT_TRUE(ring.create(kRingSlotsDefault, ""));
    workers.push_back(greet(ring));
  }
  ASSERT_TRUE(pump_until([&] { return workers_->status().size() == 2; }));
  for (HitRing& ring : rings) {
    for (std::uint32_t i = 0; i < kRingSlotsDefault + 10; ++i) (void)ring.record({{1, 1}, 0, rule_, 1});
  }
  workers_->drain_all();
  EXPECT_EQ(hits_, 2 * std::uint64_t{kRingSlotsDefault});
  EXPECT_EQ(ledger_->row(rule_)[LedgerColumn::kRingDropped], 20U);
}

TEST_F(WorkersTest, one_turn_takes_a_bounded_number_of_hits_and_every_ring_its_share) {
  start();
  HitRing rings[8];
  std::vector<FileDescriptor> workers;
  for (HitRing& ring : rings) {
    ASSERT_TRUE(ring.create(kRingSlotsDefault, ""));
    workers.push_back(greet(ring));
  }
  ASSERT_TRUE(pump_until([&] { return workers_->status().size() == 8; }));
  for (HitRing& ring : rings) {
    for (int i = 0; i < 20'000; ++i) (void)ring.record({{1, 1}, 0, rule_, 1});
  }
  std::uint64_t most = 0;
  std::uint64_t before = 0;
  EXPECT_TRUE(pump_until([&] {
    most = std::max(most, hits_ - before);
    before = hits_;
    return hits_ >= kHitsPerTurn * 3;
  }));
  EXPECT_LE(most, kHitsPerTurn);
  for (const WorkerStatus& worker : workers_->status()) EXPECT_GE(worker.figures.drained, kHitsPerRingTurn);
  EXPECT_TRUE(pump_until([&] { return hits_ == 160'000; }));
}

}  // namespace
}  // namespace popgate
