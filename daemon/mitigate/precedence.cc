// SPDX-License-Identifier: Apache-2.0
#include "daemon/mitigate/precedence.h"

#include <sodium.h>

#include <bit>
#include <string>
#include <string_view>

namespace popgate {
namespace {

class Bytes {
 public:
  void put(std::uint64_t value) {
    for (int shift = 56; shift >= 0; shift -= 8) text_.push_back(static_cast<char>(value >> shift & 0xff));
  }
  void put(PopInstant t) { put(static_cast<std::uint64_t>(t.time_since_epoch().count())); }
  void put(std::string_view text) {
    put(std::uint64_t{text.size()});
    text_.append(text);
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void put_content(Bytes& bytes, const Mitigation& m) {
  bytes.put(std::uint64_t{m.lifted});
  bytes.put(static_cast<std::uint64_t>(m.space));
  bytes.put(m.rule);
  bytes.put(m.rule_revision);
  bytes.put(m.decided_at);
  bytes.put(m.evidence.lo);
  bytes.put(std::bit_cast<std::uint64_t>(m.evidence.estimate));
  bytes.put(std::uint64_t{m.evidence.hi.has_value()});
  bytes.put(m.evidence.hi.value_or(0));
  bytes.put(m.evidence.limit);
  bytes.put(m.decided_by);
  bytes.put(m.reason);
  // Last, and only when it says something: an entry without a label has the digest that earlier releases give it, and
  // of two copies of which one lost its label on the way through such a release, the labelled one stands.
  if (m.evidence.under != DecidedUnder::kCounters) bytes.put(static_cast<std::uint64_t>(m.evidence.under));
}

void put_identity(Bytes& bytes, const Mitigation& m) {
  for (const std::uint64_t value :
       {m.key.hi, m.key.lo, m.version.epoch, m.version.counter, m.version.node, m.version.incarnation}) {
    bytes.put(value);
  }
}

}  // namespace

std::strong_ordering precedence(const Mitigation& a, const Mitigation& b) {
  if (const auto order = a.version <=> b.version; order != 0) return order;
  Bytes of_a;
  Bytes of_b;
  put_content(of_a, a);
  put_content(of_b, b);
  return of_a.text().compare(of_b.text()) <=> 0;
}

std::uint64_t entry_hash(const Mitigation& mitigation) {
  // A fixed key: nodes must agree, and whoever can choose entries is an authenticated peer.
  static constexpr unsigned char kDigestKey[crypto_shorthash_KEYBYTES] = {'p', 'o', 'p', 'g', 'a', 't', 'e', ' ',
                                                                          'd', 'i', 'g', 'e', 's', 't', 0,   0};
  Bytes bytes;
  put_identity(bytes, mitigation);
  put_content(bytes, mitigation);
  unsigned char hash[crypto_shorthash_BYTES];
  crypto_shorthash(hash, reinterpret_cast<const unsigned char*>(bytes.text().data()), bytes.text().size(), kDigestKey);
  std::uint64_t value = 0;
  for (const unsigned char byte : hash) value = value << 8 | byte;
  return value;
}

}  // namespace popgate
