// SPDX-License-Identifier: Apache-2.0
// A peer's bytes, cut into reads of the length that the first byte says: frames, messages, and what the set makes of
// the entries. Aborts when a message does not survive its own encoding, or an entry ends later than any may.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "daemon/mitigate/mitigations.h"
#include "daemon/peers/frame.h"
#include "daemon/peers/hello.h"
#include "daemon/peers/transit.h"
#include "daemon/peers/wire.h"

namespace popgate {
namespace {

class Receiver {
 public:
  void hear(std::string_view bytes) {
    reader_.append(bytes);
    while (const auto payload = reader_.next()) {
      const auto message = wire::decode(*payload);
      if (message) take(*message);
    }
  }

 private:
  void take(const wire::Message& message) {
    const auto again = wire::decode(wire::encode(message));
    const bool is_known = !std::holds_alternative<wire::UnknownKind>(message);
    POPGATE_ASSERT(!is_known || (again.ok() && again->index() == message.index()));
    if (const auto* hello = std::get_if<wire::Hello>(&message)) (void)check_hello(own_, *hello, std::nullopt);
    const auto* entry = std::get_if<wire::Entry>(&message);
    if (entry == nullptr) return;
    Mitigation mitigation = entry->mitigation;
    mitigation.until = now_ + entry->remaining - transit_.delay(entry->host, now_);
    (void)set_.merge(mitigation, {Origin::Kind::kPeer, 1, entry->in_snapshot}, now_);
    const auto enforced = set_.enforcement(mitigation.key, now_);
    POPGATE_ASSERT(!enforced || enforced->until <= now_ + kMitigationMax);
    now_ += std::chrono::seconds(1);
    (void)set_.expire(now_);
  }

  FrameReader reader_;
  Transit transit_;
  MeshIdentity own_{.pop = "fra", .node = "a", .second_secret = wire::SecretName{7, true}, .members = {"a", "b"}};
  HostInstant now_{std::chrono::hours(1)};
  Mitigations set_{{"a", 1, 16}, [](const Mitigation&, const Origin&) {}};
};

}  // namespace
}  // namespace popgate

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  if (bytes == 0) return 0;
  const std::size_t read_bytes = data[0] == 0 ? bytes : data[0];
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, bytes - 1);
  popgate::Receiver receiver;
  while (!rest.empty()) {
    receiver.hear(rest.substr(0, read_bytes));
    rest.remove_prefix(std::min(read_bytes, rest.size()));
  }
  return 0;
}
