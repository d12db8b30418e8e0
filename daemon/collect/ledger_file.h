// SPDX-License-Identifier: Apache-2.0
//
// The ledger's file as mapped memory: opening, locking, checking, making and growing it. What it means is ledger.h's.
//
// Its memory is allocated when it is opened (posix_fallocate), so that a full tmpfs is an error at start and not a
// SIGBUS in the middle of a step.
//
// Threads: one owner.
// Invariants: 1. After open() every number in the file that is used as an index is within its bounds.
//             2. One process at a time: the lock goes with the process, however it ends.
// Limits: kRuleNumbersMax rows.
#pragma once

#include <string>

#include "daemon/collect/ledger_format.h"
#include "daemon/result.h"
#include "libclient/file_descriptor.h"
#include "libclient/mapping.h"

namespace popgate {

class LedgerFile {
 public:
  [[nodiscard]] static Result<LedgerFile> open(const std::string& path, std::string& note);
  [[nodiscard]] static Result<LedgerFile> in_memory();

  [[nodiscard]] LedgerHeader& header() const { return *reinterpret_cast<LedgerHeader*>(mapping_.data()); }
  [[nodiscard]] LedgerJournal& journal() const {
    return *reinterpret_cast<LedgerJournal*>(mapping_.data() + kLedgerJournalOffset);
  }
  [[nodiscard]] RingAccountRecord& account(RingAccount index) const {
    return reinterpret_cast<RingAccountRecord*>(mapping_.data() + kLedgerAccountsOffset)[index];
  }
  [[nodiscard]] LedgerRecord& record(RuleNumber number) const {
    return reinterpret_cast<LedgerRecord*>(mapping_.data() + kLedgerRowsOffset)[number];
  }
  [[nodiscard]] std::uint32_t row_count() const { return header().row_count.load(std::memory_order_relaxed); }

  /// Doubles the rows. False when there are kRuleNumbersMax already, or no room.
  [[nodiscard]] bool grow();

 private:
  [[nodiscard]] Status prepare(const std::string& path, std::string& damage);
  [[nodiscard]] Status make(const std::string& path);

  FileDescriptor fd_;
  Mapping mapping_;
};

}  // namespace popgate
