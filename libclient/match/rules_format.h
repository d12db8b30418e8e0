// SPDX-License-Identifier: Apache-2.0
//
// The bytes of the compiled rules: what the daemon writes once and every worker maps read-only.
//
// Flat and position-independent: a header, then sections of fixed-size records that name each other by index and name
// text by offset. Nothing is ever changed in place; a reload writes a new block. Rules stand in the order of the
// configuration. Three hash indexes lead to them:
//
//     host  (exact, or a suffix with its dot)  -> group       each group: the rules of one host, of one suffix, or
//     (group, exact path)                      -> path        of no host at all; those with an exact path are found
//     rule name                                -> rule        through `paths`, the others stand in the group's list
//
// An index is open addressing with linear probing over a power of two of 32-bit slots, at most half full: 0 is empty,
// otherwise the low bits are the record's index plus one and the high bits are bits of the hash, so that most foreign
// records are passed over without touching them. Hashes are seeded from the PoP's secret: who may name hosts in the
// configuration cannot aim at one slot.
//
// Invariants: 1. Little-endian; every section begins at a multiple of 8; total_bytes is the length of the block.
//             2. numbers[rules[i].number] == i: rule numbers are unique.
// Limits: kRulesBytesMax bytes; kRuleNumbersMax rules, groups and paths.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "libclient/key.h"

namespace popgate {

static_assert(std::endian::native == std::endian::little, "the block of rules is read in place");

inline constexpr std::uint64_t kRulesMagic = 0x31454c5552475050;  // "PPGRULE1"
inline constexpr std::uint32_t kRulesVersion = 1;
/// Of a block with a SecondSecretRecord behind the header. A library that does not know it goes on with the rules that
/// it has, instead of counting under half of the secrets.
inline constexpr std::uint32_t kRulesVersionTwoSecrets = 2;
inline constexpr std::size_t kRulesBytesMax = std::size_t{512} << 20;
inline constexpr std::size_t kRuleNameBytesMax = 63;    // a verdict has room for 64 with the terminating zero
inline constexpr std::size_t kRuleHostBytesMax = 253;   // of a domain name
inline constexpr std::size_t kRulePathBytesMax = 1024;  // of an exact path, prefix or glob
inline constexpr std::size_t kRuleMethodsMax = 16;
inline constexpr std::size_t kTrustedRangesMax = 1024;  // they are searched one after the other

inline constexpr unsigned kIndexItemBits = kRuleNumberBits + 1;  // a record's index plus one
inline constexpr std::uint32_t kIndexItemMask = (std::uint32_t{1} << kIndexItemBits) - 1;
inline constexpr std::uint32_t kNoRecord = 0xffffffff;

/// Where a section begins, in bytes from the start of the block, and how many records it has.
struct RulesSection {
  std::uint64_t offset;
  std::uint64_t count;
};

struct RulesHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint64_t total_bytes;
  std::uint64_t revision;          // RuleSet::revision()
  std::uint8_t secret[16];         // HashSecret
  std::uint64_t index_seed;        // of the three indexes
  std::uint32_t suffix_bytes_max;  // the longest host suffix of any group; 0: there is none
  std::uint32_t hostless_group;    // kNoRecord: every rule names a host
  RulesSection text;               // bytes; what every TextRecord points into
  RulesSection trusted;            // TrustedRecord
  RulesSection rules;              // RuleRecord, in the order of the configuration
  RulesSection numbers;            // u32: by rule number, the index in `rules`, or kNoRecord
  RulesSection key_parts;          // KeyPartRecord
  RulesSection methods;            // TextRecord, upper case
  RulesSection groups;             // GroupRecord
  RulesSection paths;              // PathRecord
  RulesSection candidates;         // u32: indexes in `rules`, ascending within each list
  RulesSection host_index;         // u32 slots -> groups
  RulesSection path_index;         // u32 slots -> paths
  RulesSection name_index;         // u32 slots -> rules
};
static_assert(sizeof(RulesHeader) == 64 + 12 * sizeof(RulesSection));

/// Directly behind the header of a block of kRulesVersionTwoSecrets; `header_bytes` covers it.
struct SecondSecretRecord {
  std::uint8_t secret[16];
  std::uint32_t use;  // SecondSecret: kCounted or kChecked
  std::uint32_t reserved;
};
static_assert(sizeof(SecondSecretRecord) % 8 == 0);

struct TextRecord {
  std::uint32_t offset;  // in the text section
  std::uint32_t bytes;
};

struct TrustedRecord {
  std::uint8_t octets[16];  // network order; an IPv4 range uses the first 4
  std::uint8_t bytes;       // 4 or 16
  std::uint8_t prefix_bits;
  std::uint8_t reserved[2];
};
static_assert(sizeof(TrustedRecord) == 20);

enum class PathKind : std::uint8_t { kAny = 0, kExact = 1, kPrefix = 2, kGlob = 3 };

inline constexpr std::uint8_t kRuleFlagBlocks = 1;     // action: block
inline constexpr std::uint8_t kRuleFlagCountsAll = 2;  // count: all
inline constexpr std::uint8_t kRuleFlagFused = 4;      // max_blocked_share is set

struct RuleRecord {
  std::uint64_t counter_identity;
  std::uint64_t limit;
  std::uint64_t window_us;
  std::uint32_t number;
  std::uint32_t cost;
  TextRecord name;
  TextRecord path;
  std::uint16_t glob_head_bytes;  // literal bytes before the first wildcard of a glob
  std::uint16_t glob_tail_bytes;  // and after its last
  std::uint32_t methods_first;
  std::uint32_t key_parts_first;
  std::uint8_t methods_count;  // 0: every method
  std::uint8_t key_parts_count;
  PathKind path_kind;
  std::uint8_t flags;
};
static_assert(sizeof(RuleRecord) == 64);

struct KeyPartRecord {
  KeyPart type;
  std::uint8_t v4_prefix;
  std::uint8_t v6_prefix;
  std::uint8_t reserved;
  TextRecord name;  // of a header (lower case) or cookie
};
static_assert(sizeof(KeyPartRecord) == 12);

enum class GroupKind : std::uint32_t { kHostless = 0, kHost = 1, kSuffix = 2 };

/// The rules of one host, one suffix, or no host. The list holds those whose path is not exact.
struct GroupRecord {
  TextRecord host;  // lower case; of a suffix with its dot: ".example.com"
  GroupKind kind;
  std::uint32_t candidates_first;
  std::uint32_t candidates_count;
};
static_assert(sizeof(GroupRecord) == 20);

/// The rules of one group that name one exact path.
struct PathRecord {
  TextRecord path;
  std::uint32_t group;
  std::uint32_t candidates_first;
  std::uint32_t candidates_count;
};
static_assert(sizeof(PathRecord) == 20);

}  // namespace popgate
