// SPDX-License-Identifier: Apache-2.0
#include "tests/libclient/daemon_side.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <new>
#include <stdexcept>

namespace popgate {
namespace {

FileDescriptor reopen_read_only(int fd) {
  FileDescriptor reopened(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDONLY | O_CLOEXEC));
  if (!reopened.is_open()) throw std::runtime_error("cannot reopen a memfd");
  return reopened;
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() {
  path_ = (std::filesystem::temp_directory_path() / "popgate-XXXXXX").string();
  if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp");
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

FileDescriptor read_only_file(const std::vector<std::byte>& bytes) {
  const FileDescriptor fd(memfd_create("test", MFD_CLOEXEC));
  if (write(fd.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    throw std::runtime_error("cannot write a memfd");
  }
  return reopen_read_only(fd.get());
}

HashSecret secret_of_byte(std::uint8_t byte) {
  HashSecret secret;
  secret.bytes.fill(byte);
  return secret;
}

Rule rule_for_all(const std::string& name, RuleNumber number) {
  Rule rule;
  rule.name = name;
  rule.number = number;
  rule.key.push_back({});
  rule.limit = 100;
  rule.window = WindowShape::make(std::chrono::seconds(60), kSlotsDefault, milliseconds(20));
  rule.mitigate = std::chrono::seconds(60);
  return rule;
}

DaemonSide::Table::Table() {
  fd_.reset(memfd_create("table", MFD_CLOEXEC));
  if (ftruncate(fd_.get(), static_cast<off_t>(bytes())) != 0) throw std::runtime_error("ftruncate");
  if (!mapping_.map(fd_.get(), bytes(), PROT_READ | PROT_WRITE, true)) throw std::runtime_error("mmap");
  auto* const header = new (mapping_.data()) TableHeader{};
  header->magic = kTableMagic;
  header->version = kTableVersion;
  header->bucket_count = kBuckets;
  header->heartbeat_us.store(HostClock::now().time_since_epoch().count());
  read_only_ = reopen_read_only(fd_.get());
}

std::atomic<std::uint64_t>* DaemonSide::Table::words(const Key& key) const {
  return reinterpret_cast<std::atomic<std::uint64_t>*>(mapping_.data() + kTableHeaderBytes) +
         bucket_word(home_bucket(key, kBuckets));
}

// The entry of the key, or the first free one of its bucket. No test fills a bucket.
void DaemonSide::Table::put(const Key& key, RuleNumber rule, microseconds remaining, std::uint8_t flags,
                            std::uint8_t admit) {
  std::atomic<std::uint64_t>* entry = words(key);
  while (entry[1].load() != 0 && tag_in(entry[0].load()) != tag_of(key)) entry += kWordsPerEntry;
  entry[0].store(pack_tag_word(tag_of(key), 1, 0));
  entry[1].store(pack_value_word({until_steps(HostClock::now() + remaining), admit, rule, flags}, 1));
}

void DaemonSide::Table::clear() {
  auto* const first = reinterpret_cast<std::atomic<std::uint64_t>*>(mapping_.data() + kTableHeaderBytes);
  for (std::size_t i = 0; i < kBuckets * kWordsPerBucket; ++i) first[i].store(0);
}

void DaemonSide::Table::turn_off(bool off) {
  reinterpret_cast<TableHeader*>(mapping_.data())->all_off.store(off ? 1 : 0);
}

DaemonSide::DaemonSide(const std::string& socket_path, Ledger& ledger, const Table& table) : table_(table) {
  Workers::Options options;
  options.socket_path = socket_path;
  auto workers = Workers::open(loop_, options, ledger, [this](const Hit& hit, PopInstant) { hits_.push_back(hit); });
  if (!workers) throw std::runtime_error(workers.error());
  workers_ = std::move(*workers);
}

void DaemonSide::use_rules(const std::vector<Rule>& rules, const HashSecrets& secrets) {
  std::vector<Rule> identified = rules;
  for (Rule& rule : identified) identify(rule);
  const std::vector<std::byte> block = compile_rules(RuleSet(identified), secrets, {});
  const FileDescriptor file = read_only_file(block);
  const Status status = offered_ ? workers_->offer_rules(file.get(), block.size())
                                 : workers_->offer(table_.descriptor(), table_.bytes(), file.get(), block.size());
  if (!status) throw std::runtime_error(status.error());
  offered_ = true;
}

void DaemonSide::pump() { event_base_loop(loop_.base(), EVLOOP_NONBLOCK); }

bool DaemonSide::pump_until(const std::function<bool()>& condition) {
  const HostInstant deadline = HostClock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (HostClock::now() > deadline) return false;
    pump();
    usleep(200);
  }
  return true;
}

}  // namespace popgate
