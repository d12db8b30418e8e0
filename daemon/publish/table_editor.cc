// SPDX-License-Identifier: Apache-2.0
#include "daemon/publish/table_editor.h"

#include <algorithm>

#include "daemon/result.h"
#include "libclient/check/table_reader.h"

namespace popgate {
namespace {

static_assert(kTableMitigationMax == kMitigationMax);

constexpr std::size_t word_of(std::size_t slot) { return slot * kWordsPerEntry; }

std::uint64_t value_word(const Enforcement& wanted, std::uint64_t gen) {
  POPGATE_ASSERT(wanted.rule < kRuleNumbersMax);
  TableValue value;
  value.until = until_steps(wanted.until);
  value.rule = wanted.rule;
  value.flags = static_cast<std::uint8_t>((wanted.log_only ? kTableFlagLogOnly : 0) |
                                          (wanted.by_operator ? kTableFlagOperator : 0));
  return pack_value_word(value, gen);
}

// A longer one would wrap; nobody may decide one.
Enforcement bounded(const Enforcement& wanted, HostInstant now) {
  Enforcement result = wanted;
  result.until = std::min(wanted.until, now + kTableMitigationMax);
  return result;
}

}  // namespace

TableEditor::TableEditor(TableMemory& memory, std::uint32_t bucket_count, std::size_t entries_max)
    : memory_(memory),
      bucket_count_(bucket_count),
      entries_max_(entries_max),
      slots_(std::size_t{bucket_count} * kEntriesPerBucket),
      passing_(bucket_count) {
  POPGATE_ASSERT(std::has_single_bit(bucket_count) && bucket_count >= kTableBucketsMin);
}

PutOutcome TableEditor::put(const Enforcement& wanted, HostInstant now) {
  POPGATE_ASSERT(adopted_);
  const auto held = find(wanted.key);
  if (wanted.until <= now) {
    if (held) erase(*held);
    return PutOutcome::kEnded;
  }
  if (held) return change(*held, bounded(wanted, now)) ? PutOutcome::kChanged : PutOutcome::kUnchanged;
  if (entries_ >= entries_max_for(wanted)) return PutOutcome::kRefused;
  const auto room = find_room(wanted.key, now);
  if (!room) return PutOutcome::kRefused;
  insert(*room, bounded(wanted, now));
  return PutOutcome::kInserted;
}

std::size_t TableEditor::entries_max_for(const Enforcement& wanted) const {
  return wanted.by_operator ? entries_max_ + entries_max_ / kOperatorReserve : entries_max_;
}

bool TableEditor::remove(const Key& key) {
  POPGATE_ASSERT(adopted_);
  const auto held = find(key);
  if (held) erase(*held);
  return held.has_value();
}

std::size_t TableEditor::sweep(std::size_t slots_max, HostInstant now) {
  std::size_t deleted = 0;
  for (std::size_t i = std::min(slots_max, slots_.size()); i > 0; --i) {
    if (slots_[sweep_next_].used && slots_[sweep_next_].until <= now) {
      erase(sweep_next_);
      ++deleted;
    }
    sweep_next_ = (sweep_next_ + 1) % slots_.size();
  }
  return deleted;
}

// The order matters to readers and to a next writer that finds this half done. Overflow bits are set before anything
// that needs them and cleared when all else is done: a bit too many costs a reader a cache line, one too few hides an
// entry. Room is made before it is needed.
Adoption TableEditor::adopt(std::span<const Enforcement> wanted, HostInstant now) {
  POPGATE_ASSERT(!adopted_);
  adopted_ = true;
  Adoption adoption;
  claim_wanted(wanted, now, adoption);
  adoption.deleted = delete_unclaimed();
  for (const Enforcement& one : wanted) {
    switch (put(one, now)) {
      case PutOutcome::kInserted:
        ++adoption.inserted;
        break;
      case PutOutcome::kRefused:
        adoption.refused.push_back(one);
        break;
      default:
        break;
    }
  }
  for (std::size_t bucket = 0; bucket < bucket_count_; ++bucket) set_overflow(bucket, passing_[bucket] != 0);
  return adoption;
}

void TableEditor::claim_wanted(std::span<const Enforcement> wanted, HostInstant now, Adoption& adoption) {
  for (const Enforcement& one : wanted) {
    if (one.until <= now || entries_ >= entries_max_for(one) || find(one.key)) continue;
    const auto slot = find_unclaimed(one.key);
    if (!slot) continue;
    occupy(*slot, bounded(one, now));
    ++adoption.kept;
  }
}

std::size_t TableEditor::delete_unclaimed() {
  std::size_t deleted = 0;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot].used) continue;
    const std::size_t word = word_of(slot);
    if (unpack_value_word(memory_.load(word + 1)).until == 0) continue;
    memory_.store(word + 1, pack_value_word({}, gen_in_tag_word(memory_.load(word))));
    ++deleted;
  }
  return deleted;
}

std::size_t TableEditor::bucket_at(const Key& key, std::size_t distance) const {
  return (home_bucket(key, bucket_count_) + distance) & (bucket_count_ - 1);
}

std::optional<std::size_t> TableEditor::find(const Key& key) const {
  for (std::size_t distance = 0; distance < kProbeBucketsMax; ++distance) {
    const std::size_t bucket = bucket_at(key, distance);
    for (std::size_t entry = 0; entry < kEntriesPerBucket; ++entry) {
      const std::size_t slot = bucket * kEntriesPerBucket + entry;
      if (slots_[slot].used && slots_[slot].key == key) return slot;
    }
    if (passing_[bucket] == 0) break;
  }
  return std::nullopt;
}

// A free entry, nearest to home; an ended one nearer by is freed for it.
std::optional<std::size_t> TableEditor::find_room(const Key& key, HostInstant now) {
  for (std::size_t distance = 0; distance < kProbeBucketsMax; ++distance) {
    for (std::size_t entry = 0; entry < kEntriesPerBucket; ++entry) {
      const std::size_t slot = bucket_at(key, distance) * kEntriesPerBucket + entry;
      if (slots_[slot].used && slots_[slot].until > now) continue;
      if (slots_[slot].used) erase(slot);
      return slot;
    }
  }
  return std::nullopt;
}

// An entry of the writer before us that a reader would take for this key's.
std::optional<std::size_t> TableEditor::find_unclaimed(const Key& key) const {
  for (std::size_t distance = 0; distance < kProbeBucketsMax; ++distance) {
    for (std::size_t entry = 0; entry < kEntriesPerBucket; ++entry) {
      const std::size_t slot = bucket_at(key, distance) * kEntriesPerBucket + entry;
      const std::uint64_t tag_word = memory_.load(word_of(slot));
      const std::uint64_t value = memory_.load(word_of(slot) + 1);
      const bool whole = gen_in_tag_word(tag_word) == gen_in_value_word(value) && unpack_value_word(value).until != 0;
      if (!slots_[slot].used && whole && tag_in(tag_word) == tag_of(key)) return slot;
    }
  }
  return std::nullopt;
}

void TableEditor::insert(std::size_t slot, const Enforcement& wanted) {
  occupy(slot, wanted);  // sets the overflow bits on the way first
  const std::size_t word = word_of(slot);
  const std::uint64_t old = memory_.load(word);
  // From T and not from V: a writer killed between the two stores has moved only T on, and a reader may hold that T.
  const std::uint64_t gen = (gen_in_tag_word(old) + 1) & kGenMask;
  memory_.store(word, pack_tag_word(tag_of(wanted.key), gen, old));
  memory_.store(word + 1, value_word(wanted, gen));
}

bool TableEditor::change(std::size_t slot, const Enforcement& wanted) {
  slots_[slot].until = wanted.until;
  const std::size_t word = word_of(slot);
  const std::uint64_t value = value_word(wanted, gen_in_tag_word(memory_.load(word)));
  if (memory_.load(word + 1) == value) return false;
  memory_.store(word + 1, value);
  return true;
}

void TableEditor::erase(std::size_t slot) {
  const std::size_t word = word_of(slot);
  memory_.store(word + 1, pack_value_word({}, gen_in_tag_word(memory_.load(word))));
  const std::size_t bucket = slot / kEntriesPerBucket;
  for (std::size_t passed = home_bucket(slots_[slot].key, bucket_count_); passed != bucket;
       passed = (passed + 1) & (bucket_count_ - 1)) {
    if (--passing_[passed] == 0) set_overflow(passed, false);
  }
  slots_[slot] = {};
  --entries_;
}

void TableEditor::occupy(std::size_t slot, const Enforcement& wanted) {
  const std::size_t bucket = slot / kEntriesPerBucket;
  for (std::size_t passed = home_bucket(wanted.key, bucket_count_); passed != bucket;
       passed = (passed + 1) & (bucket_count_ - 1)) {
    if (++passing_[passed] == 1) set_overflow(passed, true);
  }
  slots_[slot] = {wanted.key, wanted.until, true};
  ++entries_;
}

// The bit stands in T of the bucket's first entry, whose tag and generation stay as they are.
void TableEditor::set_overflow(std::size_t bucket, bool overflow) {
  const std::size_t word = bucket_word(bucket);
  const std::uint64_t old = memory_.load(word);
  const std::uint64_t wanted = overflow ? old | kOverflowBit : old & ~kOverflowBit;
  if (wanted != old) memory_.store(word, wanted);
}

}  // namespace popgate
