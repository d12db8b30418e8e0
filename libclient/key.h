// SPDX-License-Identifier: Apache-2.0
//
// A key: the 128-bit keyed hash that stands for "this identity under this rule" everywhere behind the matcher.
//
// It is SipHash-2-4 with a 128-bit result (libsodium) under the PoP's secret, over the rule's counter identity and then
// every part of the key, each with its type, whether it was present, and its length. SipHash and not a faster hash,
// because a client who could predict keys could aim at another client's counter; typed and length-prefixed parts,
// because otherwise two identities could run together into one string; presence apart from length, because a missing
// header is not an empty one.
//
// Threads: values; a KeyBuilder belongs to one thread.
// Invariants: 1. Equal (secret, counter identity, parts) give equal keys on every node of the PoP and in every release.
//             2. `hi` chooses the table bucket, `lo` the tag; `phase_bits` chooses the slot phase.
// Limits: a part contributes at most kKeyPartBytesMax bytes of its value; a longer value is replaced by its own hash,
//         so that long values stay distinct.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace popgate {

struct Key {
  std::uint64_t hi = 0;
  std::uint64_t lo = 0;
  friend auto operator<=>(const Key&, const Key&) = default;

  /// Bits from which the phase of the key's slots is derived; independent of bucket and tag for all practical sizes.
  [[nodiscard]] constexpr std::uint64_t phase_bits() const noexcept { return hi ^ (lo << 32 | lo >> 32); }
};

struct KeyHash {
  std::size_t operator()(const Key& key) const noexcept { return static_cast<std::size_t>(key.lo); }
};

/// The secret under which keys are hashed. Shared by every node of a PoP; never leaves the daemon and its workers.
struct HashSecret {
  std::array<std::uint8_t, 16> bytes{};
  friend bool operator==(const HashSecret&, const HashSecret&) = default;
};

/// What a second secret is for, while one takes the other's place (docs/operations.md has the steps).
enum class SecondSecret : std::uint8_t {
  kNone = 0,     // there is one secret only
  kCounted = 1,  // the next one: keys are looked up and hits recorded under both
  kChecked = 2   // the former one: keys are still looked up under it, so that what it blocked stays blocked to its end
};

/// The secrets of a PoP: one, or two while they change.
struct HashSecrets {
  HashSecrets() = default;
  HashSecrets(const HashSecret& only) : first(only) {}  // NOLINT(google-explicit-constructor): one is the usual case
  HashSecrets(const HashSecret& one, const HashSecret& other, SecondSecret what)
      : first(one), second(other), use(what) {}
  friend bool operator==(const HashSecrets&, const HashSecrets&) = default;

  HashSecret first;
  HashSecret second;  // all zeros when there is none
  SecondSecret use = SecondSecret::kNone;
};

/// What a rule counts, as far as counters are concerned: a hash of its name, match, key and window. Two rules with the
/// same counter identity share counters; changing a limit does not change it.
using CounterIdentity = std::uint64_t;

/// A rule's place in the ledger, the hit ring and the table: stable while anything refers to it, local to a node.
using RuleNumber = std::uint32_t;
inline constexpr unsigned kRuleNumberBits = 20;  // what a table entry has room for
inline constexpr RuleNumber kRuleNumbersMax = RuleNumber{1} << kRuleNumberBits;

/// A rule's name on the wire: a hash of its name, the same on every node.
using RuleId = std::uint64_t;

enum class KeyPart : std::uint8_t {
  kClientIp = 1,
  kHeader = 2,
  kCookie = 3,
  kHost = 4,
  kPath = 5,
  kMethod = 6,
  kCustom = 7
};

inline constexpr std::size_t kKeyPartBytesMax = 256;
inline constexpr std::size_t kKeyPartsMax = 8;

/// Collects the parts of one key on the stack and hashes them. About 30 ns for a client address.
class KeyBuilder {
 public:
  KeyBuilder(const HashSecret& secret, CounterIdentity identity) noexcept;

  /// `name` tells a header or cookie apart from another in one rule; empty for the other types.
  void add(KeyPart type, std::string_view name, std::string_view value) noexcept;
  void add_missing(KeyPart type, std::string_view name) noexcept;

  [[nodiscard]] Key finish() noexcept;

 private:
  void put(std::string_view bytes) noexcept;
  void put_length(std::size_t bytes) noexcept;

  // Room for every part at its longest: type, presence, two lengths, the hash of a long name, the value.
  static constexpr std::size_t kBytesMax = 8 + kKeyPartsMax * (2 + 4 + 4 + 64 + kKeyPartBytesMax);
  HashSecret secret_;
  std::array<unsigned char, kBytesMax> buffer_;  // not zeroed: only the first `used_` bytes are read
  std::size_t used_ = 0;
};

/// 32 lower-case hexadecimal digits, as people see a key (`popgatectl explain`, block ids).
[[nodiscard]] std::string key_text(const Key& key);
/// The same and a terminating zero, without allocating.
inline constexpr std::size_t kKeyTextBytes = 33;
void write_key_text(const Key& key, char (&out)[kKeyTextBytes]) noexcept;
/// False unless `text` is exactly 32 hexadecimal digits.
[[nodiscard]] bool parse_key_text(std::string_view text, Key& out) noexcept;

/// 22 characters of base64url without padding, as counter keys carry it between `{` and `}`.
inline constexpr std::size_t kKeyTagChars = 22;
void write_key_tag(const Key& key, char (&out)[kKeyTagChars]) noexcept;

}  // namespace popgate
