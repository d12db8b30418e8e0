// SPDX-License-Identifier: Apache-2.0
#include "daemon/collect/ledger.h"

#include <algorithm>
#include <unordered_map>

#include "daemon/collect/ledger_file.h"
#include "daemon/collect/ledger_format.h"

namespace popgate {
namespace {

constexpr std::size_t index_of(LedgerColumn column) { return static_cast<std::size_t>(column); }

// Saturates: a column never wraps round, whatever is added.
std::uint64_t sum(std::uint64_t a, std::uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

class MappedLedger final : public Ledger {
 public:
  explicit MappedLedger(LedgerFile file) : file_(std::move(file)) {
    redo();
    count_lost();
    for (RuleNumber number = 1; number < file_.row_count(); ++number) {
      if (const RuleId rule = record(number).rule.load(std::memory_order_relaxed); rule != 0) numbers_[rule] = number;
    }
    daemon_ = file_.header().daemons.load(std::memory_order_relaxed) + 1;
    file_.header().daemons.store(daemon_, std::memory_order_relaxed);
  }

  std::optional<RuleNumber> number_for(RuleId rule) override;
  void release(RuleNumber number) override;
  void add(RuleNumber rule, LedgerColumn column, std::uint64_t hits) override;
  [[nodiscard]] bool has_row(RuleNumber rule) const override {
    return rule != kNoRule && rule < file_.row_count() && record(rule).rule.load(std::memory_order_relaxed) != 0;
  }
  [[nodiscard]] LedgerRow row(RuleNumber rule) const override;
  [[nodiscard]] std::vector<RuleNumber> rows() const override;

  [[nodiscard]] RingAccount account_for(const RingId& ring, RingStep& step) override;
  void drain(RingAccount account, std::uint64_t tail, std::span<const RuleHits> drained) override;
  void fold(RingAccount account, RuleNumber rule, std::uint64_t hits, std::uint64_t fold_count) override;
  void forget(RingAccount account) override { file_.account(account).used.store(0, std::memory_order_release); }

 private:
  [[nodiscard]] LedgerRecord& record(RuleNumber rule) const { return file_.record(rule); }
  [[nodiscard]] std::uint64_t column(RuleNumber rule, LedgerColumn column) const {
    return record(rule).columns[index_of(column)].load(std::memory_order_relaxed);
  }
  void note(RuleNumber rule, LedgerColumn column, std::uint64_t hits);
  void commit(RingAccount account, const RingStep& step);
  void redo();
  void count_lost();
  [[nodiscard]] RingAccount free_account() const;
  [[nodiscard]] static RingStep step_of(const RingAccountRecord& account) {
    return {account.tail, account.fold_rule, 0, account.fold_count};
  }

  LedgerFile file_;
  std::uint32_t daemon_ = 0;
  RuleNumber first_free_ = 1;  // no row before it is free
  std::unordered_map<RuleId, RuleNumber> numbers_;
};

std::optional<RuleNumber> MappedLedger::number_for(RuleId rule) {
  if (rule == 0) return std::nullopt;
  if (const auto found = numbers_.find(rule); found != numbers_.end()) return found->second;
  while (first_free_ < file_.row_count() && has_row(first_free_)) ++first_free_;
  if (first_free_ >= file_.row_count() && !file_.grow()) return std::nullopt;
  LedgerRecord& fresh = record(first_free_);
  for (auto& column : fresh.columns) column.store(0, std::memory_order_relaxed);
  fresh.rule.store(rule, std::memory_order_release);  // last: a row without an owner does not exist
  numbers_[rule] = first_free_;
  return first_free_++;
}

void MappedLedger::release(RuleNumber number) {
  if (!has_row(number)) return;
  numbers_.erase(record(number).rule.load(std::memory_order_relaxed));
  record(number).rule.store(0, std::memory_order_release);
  first_free_ = std::min(first_free_, number);
}

void MappedLedger::add(RuleNumber rule, LedgerColumn column, std::uint64_t hits) {
  if (!has_row(rule)) return;
  auto& cell = record(rule).columns[index_of(column)];
  cell.store(sum(cell.load(std::memory_order_relaxed), hits), std::memory_order_release);
}

LedgerRow MappedLedger::row(RuleNumber rule) const {
  LedgerRow row;
  if (!has_row(rule)) return row;
  row.rule = record(rule).rule.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < kLedgerColumns; ++i)
    row.columns[i] = record(rule).columns[i].load(std::memory_order_relaxed);
  return row;
}

std::vector<RuleNumber> MappedLedger::rows() const {
  std::vector<RuleNumber> numbers;
  numbers.reserve(numbers_.size());
  for (const auto& [rule, number] : numbers_) numbers.push_back(number);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

RingAccount MappedLedger::account_for(const RingId& ring, RingStep& step) {
  for (RingAccount i = 0; i < kRingAccountsMax; ++i) {
    RingAccountRecord& account = file_.account(i);
    if (account.used.load(std::memory_order_acquire) == 0 || !(account.ring == ring)) continue;
    account.seen_by = daemon_;
    step = step_of(account);
    return i;
  }
  const RingAccount chosen = free_account();
  RingAccountRecord& account = file_.account(chosen);
  account.used.store(0, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  account.seen_by = daemon_;
  account.ring = ring;
  account.tail = step.tail;
  account.fold_rule = step.fold_rule;
  account.fold_count = step.fold_count;
  account.used.store(1, std::memory_order_release);
  return chosen;
}

RingAccount MappedLedger::free_account() const {
  RingAccount oldest = 0;
  std::uint32_t oldest_age = 0;
  for (RingAccount i = 0; i < kRingAccountsMax; ++i) {
    const RingAccountRecord& account = file_.account(i);
    if (account.used.load(std::memory_order_relaxed) == 0) return i;
    const std::uint32_t age = daemon_ - account.seen_by;  // in daemons; 0 for what is attached now
    if (age > oldest_age) {
      oldest = i;
      oldest_age = age;
    }
  }
  return oldest;
}

void MappedLedger::drain(RingAccount account, std::uint64_t tail, std::span<const RuleHits> drained) {
  POPGATE_ASSERT(drained.size() <= kJournalUpdatesMax);
  file_.journal().update_count = 0;
  for (const RuleHits& of_rule : drained) note(of_rule.rule, LedgerColumn::kDrained, of_rule.hits);
  RingStep step = step_of(file_.account(account));
  step.tail = tail;
  commit(account, step);
}

void MappedLedger::fold(RingAccount account, RuleNumber rule, std::uint64_t hits, std::uint64_t fold_count) {
  file_.journal().update_count = 0;
  note(rule, LedgerColumn::kRingDropped, hits);
  RingStep step = step_of(file_.account(account));
  step.fold_rule = rule;
  step.fold_count = fold_count;
  commit(account, step);
}

void MappedLedger::note(RuleNumber rule, LedgerColumn column_kind, std::uint64_t hits) {
  POPGATE_ASSERT(has_row(rule));
  LedgerJournal& journal = file_.journal();
  journal.updates[journal.update_count++] = {rule, static_cast<std::uint32_t>(column_kind),
                                             sum(column(rule, column_kind), hits)};
}

void MappedLedger::commit(RingAccount account, const RingStep& step) {
  LedgerJournal& journal = file_.journal();
  journal.account = account;
  journal.step = step;
  journal.committed.store(1, std::memory_order_release);
  redo();
}

// The only place where a committed step reaches rows and accounts, for the daemon that made it and for the next one.
void MappedLedger::redo() {
  LedgerJournal& journal = file_.journal();
  if (journal.committed.load(std::memory_order_acquire) == 0) return;
  for (std::uint32_t i = 0; i < journal.update_count; ++i) {
    const JournalUpdate& update = journal.updates[i];
    record(update.rule).columns[update.column].store(update.value, std::memory_order_relaxed);
  }
  RingAccountRecord& account = file_.account(journal.account);
  account.tail = journal.step.tail;
  account.fold_rule = journal.step.fold_rule;
  account.fold_count = journal.step.fold_count;
  journal.committed.store(0, std::memory_order_release);
}

void MappedLedger::count_lost() {
  for (RuleNumber number = 1; number < file_.row_count(); ++number) {
    if (has_row(number)) add(number, LedgerColumn::kLost, row(number).pending());
  }
}

}  // namespace

std::uint64_t LedgerRow::pending() const {
  std::uint64_t accounted = 0;
  for (const LedgerColumn column : {LedgerColumn::kDelivered, LedgerColumn::kUncertain, LedgerColumn::kDropped,
                                    LedgerColumn::kExpired, LedgerColumn::kLost}) {
    accounted = sum(accounted, (*this)[column]);
  }
  const std::uint64_t drained = (*this)[LedgerColumn::kDrained];
  return drained > accounted ? drained - accounted : 0;
}

Result<std::unique_ptr<Ledger>> Ledger::open(const std::string& path, std::string& note) {
  Result<LedgerFile> file = LedgerFile::open(path, note);
  if (!file) return Error{file.error()};
  return std::unique_ptr<Ledger>(std::make_unique<MappedLedger>(std::move(*file)));
}

std::unique_ptr<Ledger> Ledger::in_memory() {
  Result<LedgerFile> file = LedgerFile::in_memory();
  POPGATE_ASSERT(file.ok());
  return std::make_unique<MappedLedger>(std::move(*file));
}

}  // namespace popgate
