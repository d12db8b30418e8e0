// SPDX-License-Identifier: Apache-2.0
//
// The daemon's side of a client test: a real worker socket with real Workers, a rules file compiled from real rules,
// and a table into which the test writes entries itself. It runs on the test's own thread, when pumped.
#pragma once

#include <event2/event.h>
#include <event2/event_struct.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/collect/ledger.h"
#include "daemon/collect/workers.h"
#include "daemon/rules.h"
#include "libclient/check/table_format.h"
#include "libclient/file_descriptor.h"
#include "libclient/mapping.h"

namespace popgate {

/// A directory that goes away with everything in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// A memfd with these bytes, by a descriptor that can only be read.
FileDescriptor read_only_file(const std::vector<std::byte>& bytes);

/// Every byte the same.
HashSecret secret_of_byte(std::uint8_t byte);

/// A rule for every request, keyed by the client's address.
Rule rule_for_all(const std::string& name, RuleNumber number);

class DaemonSide {
 public:
  static constexpr std::uint32_t kBuckets = 1024;

  /// The table and the ledger outlive this daemon: the test owns them.
  class Table {
   public:
    Table();
    [[nodiscard]] int descriptor() const { return read_only_.get(); }
    [[nodiscard]] std::size_t bytes() const { return table_bytes(kBuckets); }
    void put(const Key& key, RuleNumber rule, microseconds remaining, std::uint8_t flags = 0, std::uint8_t admit = 0);
    void clear();
    /// The brake for everything.
    void turn_off(bool off);

   private:
    [[nodiscard]] std::atomic<std::uint64_t>* words(const Key& key) const;
    FileDescriptor fd_;
    FileDescriptor read_only_;
    Mapping mapping_;
  };

  DaemonSide(const std::string& socket_path, Ledger& ledger, const Table& table);

  void use_rules(const std::vector<Rule>& rules, const HashSecrets& secrets = secret_of_byte(7));
  /// One turn of the loop.
  void pump();
  /// Pumps until the condition holds; false after ten seconds.
  [[nodiscard]] bool pump_until(const std::function<bool()>& condition);

  [[nodiscard]] Workers& workers() { return *workers_; }
  [[nodiscard]] const std::vector<Hit>& hits() const { return hits_; }

 private:
  EventLoop loop_;
  const Table& table_;
  std::unique_ptr<Workers> workers_;
  std::vector<Hit> hits_;
  bool offered_ = false;
};

}  // namespace popgate
