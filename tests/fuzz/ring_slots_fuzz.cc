// SPDX-License-Identifier: Apache-2.0
//
// A ring with any bytes in its positions, slots and counts: the reader stays inside the mapping, always gets to the
// worker's head, and takes exactly the slots that are believable. What it takes goes on to the collector.
#include <fcntl.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "daemon/collect/collector.h"
#include "daemon/collect/ring_reader.h"
#include "libclient/record/hit_ring.h"

namespace popgate {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

Rule rule_numbered(RuleNumber number) {
  Rule rule;
  rule.name = "rule";
  rule.number = number;
  rule.window = WindowShape::make(std::chrono::seconds(60), 6, milliseconds(20));
  return rule;
}

// Takes fixed-size pieces off the input; zeros once it is used up.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t bytes) : data_(data), bytes_(bytes) {}
  template <typename T>
  T take() {
    T value{};
    const std::size_t taken = bytes_ < sizeof value ? bytes_ : sizeof value;
    std::memcpy(&value, data_, taken);
    data_ += taken;
    bytes_ -= taken;
    return value;
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  const std::uint8_t* data_;
  std::size_t bytes_;
};

void fuzz(Input input) {
  static HitRing ring;
  static Mapping memory;
  if (!memory.is_mapped()) {
    require(ring.create(kRingSlotsMin, "fuzz"));
    require(memory.map(ring.file_descriptor(), ring_bytes(kRingSlotsMin), PROT_READ | PROT_WRITE, false));
  }
  auto& header = *reinterpret_cast<RingHeader*>(memory.data());
  auto* const slots = reinterpret_cast<RingSlot*>(memory.data() + ring_slots_offset());
  auto* const dropped = reinterpret_cast<std::uint64_t*>(memory.data() + ring_dropped_offset(kRingSlotsMin));
  const auto ledger = Ledger::in_memory();
  const RuleNumber rule = *ledger->number_for(1);
  Collector collector({16, 1}, *ledger);
  collector.use_rules(std::make_shared<const RuleSet>(std::vector<Rule>{rule_numbered(rule)}));

  header.tail.store(input.take<std::uint64_t>());
  header.head.store(header.tail.load());
  auto opened = RingReader::open(FileDescriptor(fcntl(ring.file_descriptor(), F_DUPFD_CLOEXEC, 0)), *ledger);
  require(opened.ok());
  RingReader& reader = **opened;
  std::uint64_t taken = 0;
  while (input.bytes() > 0) {
    const auto what = input.take<std::uint8_t>();
    const std::uint64_t tail = header.tail.load();
    if (what < 200) {
      slots[(tail + what) % kRingSlotsMin] = input.take<RingSlot>();
      header.head.store(tail + what % 16);
    } else if (what < 220) {
      header.head.store(input.take<std::uint64_t>());
    } else if (what < 240) {
      dropped[input.take<std::uint16_t>()] = input.take<std::uint64_t>();
      header.dropped_total.store(input.take<std::uint64_t>());
      while (reader.fold()) {
      }
    } else {
      header.ring_slots = input.take<std::uint32_t>();
    }
    require(reader.look() <= kRingSlotsMin);
    while (reader.waiting() != 0) {
      for (const Hit& hit : reader.drain()) {
        require(hit.rule == rule && hit.cost >= 1 && hit.cost <= kHitCostMax);
        taken += hit.cost;
        collector.add(hit, PopInstant(std::chrono::hours(500'000)));
      }
    }
    require(header.tail.load() == header.head.load());
  }
  header.ring_slots = kRingSlotsMin;
  const LedgerRow row = ledger->row(rule);
  require(row[LedgerColumn::kDrained] == taken);
  std::uint64_t summed = 0;
  std::vector<HitSum> sums;
  collector.flush(PopInstant(std::chrono::hours(500'000)), sums);
  for (const HitSum& sum : sums) summed += sum.hits;
  require(ledger->row(rule).pending() == summed);
}

}  // namespace
}  // namespace popgate

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  popgate::fuzz({data, bytes});
  return 0;
}
