// SPDX-License-Identifier: Apache-2.0
//
// A ledger file with any bytes in its header, journal, accounts and first rows: opened, or put aside with a reason, and
// in the first case used without leaving the mapping and with an account that adds up.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "daemon/collect/ledger.h"
#include "daemon/collect/ledger_format.h"

namespace popgate {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

const std::string& path() {
  static const std::string name = "/dev/shm/popgate-ledger-fuzz-" + std::to_string(getpid());
  return name;
}

// Pieces of the input, each: where (2 bytes: which 8-byte word of which part), what (8 bytes).
void damage(const std::uint8_t* data, std::size_t bytes) {
  const int fd = open(path().c_str(), O_RDWR | O_CLOEXEC);
  constexpr std::size_t parts[] = {0, kLedgerJournalOffset, kLedgerAccountsOffset, kLedgerRowsOffset};
  for (; bytes >= 10; data += 10, bytes -= 10) {
    const std::size_t offset = parts[data[0] % 4] + std::size_t{data[1]} * 8;
    require(pwrite(fd, data + 2, 8, static_cast<off_t>(offset)) == 8);
  }
  close(fd);
}

}  // namespace
}  // namespace popgate

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace popgate;
  std::string note;
  {
    auto fresh = Ledger::open(path(), note);
    require(fresh.ok());
    const RuleNumber rule = *(*fresh)->number_for(1);
    RingStep step;
    const RingAccount account = (*fresh)->account_for({1, 2}, step);
    (*fresh)->drain(account, 5, std::vector<RuleHits>{{rule, 5}});
  }
  damage(data, bytes);
  {
    auto opened = Ledger::open(path(), note);
    require(opened.ok());
    Ledger& ledger = **opened;
    for (const RuleNumber rule : ledger.rows()) require(ledger.row(rule).pending() == 0 && ledger.has_row(rule));
    RingStep step;
    const RingAccount account = ledger.account_for({1, 2}, step);
    require(account < kRingAccountsMax);
    const auto number = ledger.number_for(1);
    if (number) ledger.drain(account, step.tail + 1, std::vector<RuleHits>{{*number, 1}});
  }
  unlink(path().c_str());
  unlink((path() + ".refused").c_str());
  return 0;
}
