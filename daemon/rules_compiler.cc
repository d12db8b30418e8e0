// SPDX-License-Identifier: Apache-2.0
//
// compile_rules() of rules.h: one pass over the rules to intern their text, keys, methods, hosts and paths, one to lay
// out the lists of candidates, and one to fill the indexes. Linear in the rules; nothing is ever searched.
#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <unordered_map>

#include "daemon/result.h"
#include "daemon/rules.h"
#include "libclient/match/glob.h"
#include "libclient/match/rules_format.h"
#include "libclient/match/rules_index.h"

namespace popgate {
namespace {

template <typename Integer>
std::uint32_t narrow(Integer value) {
  POPGATE_ASSERT(static_cast<std::uint64_t>(value) <= UINT32_MAX);
  return static_cast<std::uint32_t>(value);
}

std::string length_prefixed(const std::string& text) { return std::to_string(text.size()) + ':' + text; }

/// The text section.
class TextPool {
 public:
  /// For text that comes but once: names of rules, hosts of groups.
  TextRecord append(std::string_view text) {
    const TextRecord record{narrow(bytes_.size()), narrow(text.size())};
    bytes_.append(text);
    return record;
  }
  /// For text that many rules share: it is stored once.
  TextRecord share(std::string_view text) {
    const auto known = known_.find(text);
    return known != known_.end() ? known->second : known_.emplace(text, append(text)).first->second;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  std::unordered_map<std::string_view, TextRecord> known_;  // views into the RuleSet, which outlives the compiler
};

/// Lists of records of which equal ones are stored once. `content` tells them apart.
template <typename Record>
class ListPool {
 public:
  template <typename Append>
  std::uint32_t add(const std::string& content, Append append) {
    const auto [place, is_new] = known_.try_emplace(content, narrow(records_.size()));
    if (is_new) append(records_);
    return place->second;
  }
  [[nodiscard]] const std::vector<Record>& records() const { return records_; }

 private:
  std::vector<Record> records_;
  std::unordered_map<std::string, std::uint32_t> known_;
};

struct HostKey {
  GroupKind kind;
  std::string_view host;
  friend bool operator==(const HostKey&, const HostKey&) = default;
};
struct PathKey {
  std::uint32_t group;
  std::string_view path;
  friend bool operator==(const PathKey&, const PathKey&) = default;
};
struct PlaceHash {
  std::size_t operator()(const HostKey& key) const {
    return index_hash(static_cast<std::uint64_t>(key.kind), key.host);
  }
  std::size_t operator()(const PathKey& key) const { return index_hash(key.group, key.path); }
};

GroupKind group_kind(HostMatch match) {
  switch (match) {
    case HostMatch::kAny:
      return GroupKind::kHostless;
    case HostMatch::kExact:
      return GroupKind::kHost;
    case HostMatch::kSuffix:
      return GroupKind::kSuffix;
  }
  return GroupKind::kHostless;
}

PathKind path_kind(PathMatch match) {
  switch (match) {
    case PathMatch::kAny:
      return PathKind::kAny;
    case PathMatch::kExact:
      return PathKind::kExact;
    case PathMatch::kPrefix:
      return PathKind::kPrefix;
    case PathMatch::kGlob:
      return PathKind::kGlob;
  }
  return PathKind::kAny;
}

std::vector<std::uint32_t> build_index(std::span<const std::uint64_t> hashes) {
  if (hashes.empty()) return {};
  std::vector<std::uint32_t> slots(std::bit_ceil(2 * hashes.size()));
  const std::uint64_t mask = slots.size() - 1;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    std::uint64_t slot = hashes[i] & mask;
    while (slots[slot] != 0) slot = (slot + 1) & mask;
    slots[slot] = index_tag(hashes[i]) | narrow(i + 1);
  }
  return slots;
}

/// Places sections one after the other, each at a multiple of 8.
class BlockWriter {
 public:
  explicit BlockWriter(std::size_t header_bytes) : bytes_(header_bytes) {}

  template <typename Record>
  RulesSection add(std::span<const Record> records) {
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    const RulesSection section{bytes_.size(), records.size()};
    const auto from = std::as_bytes(records);
    bytes_.insert(bytes_.end(), from.begin(), from.end());
    return section;
  }

  /// `second`: what stands behind the header when that is so long.
  std::vector<std::byte> finish(RulesHeader header, const SecondSecretRecord& second) {
    // The configuration's own bounds (kConfigBytesMax, kRuleNumbersMax) keep every block far below this.
    POPGATE_ASSERT(bytes_.size() <= kRulesBytesMax);
    header.total_bytes = bytes_.size();
    std::memcpy(bytes_.data(), &header, sizeof header);
    if (header.header_bytes > sizeof header) std::memcpy(bytes_.data() + sizeof header, &second, sizeof second);
    return std::move(bytes_);
  }

 private:
  std::vector<std::byte> bytes_;
};

class Compiler {
 public:
  explicit Compiler(const HashSecrets& secrets) : secrets_(secrets), seed_(index_seed(secrets.first)) {}

  void add(const Rule& rule) {
    RuleRecord record{};
    record.counter_identity = rule.counter_identity;
    record.limit = rule.limit;
    record.window_us = static_cast<std::uint64_t>(rule.window.window.count());
    record.number = rule.number;
    record.cost = rule.cost;
    record.name = text_.append(rule.name);
    record.flags = static_cast<std::uint8_t>((rule.action == Action::kBlock ? kRuleFlagBlocks : 0) |
                                             (rule.max_blocked_share ? kRuleFlagFused : 0) |
                                             (rule.count == CountMode::kAll ? kRuleFlagCountsAll : 0));
    add_path(rule.match, record);
    add_methods(rule.match.methods, record);
    add_key(rule.key, record);
    name_hashes_.push_back(index_hash(seed_, rule.name));
    list_of_rule_.push_back(list_for(rule.match));
    rules_.push_back(record);
  }

  void trust(const AddressRange& range) {
    TrustedRecord record{};
    std::copy(std::begin(range.base.octets), std::end(range.base.octets), record.octets);
    record.bytes = range.base.bytes;
    record.prefix_bits = range.prefix_bits;
    trusted_.push_back(record);
  }

  std::vector<std::byte> finish(std::uint64_t revision) {
    const std::vector<std::uint32_t> candidates = lay_out_candidates();
    const std::vector<std::uint32_t> numbers = number_table();
    RulesHeader header{};
    header.magic = kRulesMagic;
    const bool two = secrets_.use != SecondSecret::kNone;
    header.version = two ? kRulesVersionTwoSecrets : kRulesVersion;
    header.header_bytes = sizeof header + (two ? sizeof(SecondSecretRecord) : 0);
    header.revision = revision;
    std::copy(secrets_.first.bytes.begin(), secrets_.first.bytes.end(), header.secret);
    SecondSecretRecord second{};
    std::copy(secrets_.second.bytes.begin(), secrets_.second.bytes.end(), second.secret);
    second.use = static_cast<std::uint32_t>(secrets_.use);
    header.index_seed = seed_;
    header.suffix_bytes_max = suffix_bytes_max_;
    header.hostless_group = hostless_group_;
    BlockWriter writer(header.header_bytes);
    header.text = writer.add(std::span<const char>(text_.bytes()));
    header.trusted = writer.add(std::span<const TrustedRecord>(trusted_));
    header.rules = writer.add(std::span<const RuleRecord>(rules_));
    header.numbers = writer.add(std::span<const std::uint32_t>(numbers));
    header.key_parts = writer.add(std::span<const KeyPartRecord>(keys_.records()));
    header.methods = writer.add(std::span<const TextRecord>(methods_.records()));
    header.groups = writer.add(std::span<const GroupRecord>(groups_));
    header.paths = writer.add(std::span<const PathRecord>(paths_));
    header.candidates = writer.add(std::span<const std::uint32_t>(candidates));
    header.host_index = writer.add(std::span<const std::uint32_t>(build_index(group_hashes_)));
    header.path_index = writer.add(std::span<const std::uint32_t>(build_index(path_hashes_)));
    header.name_index = writer.add(std::span<const std::uint32_t>(build_index(name_hashes_)));
    return writer.finish(header, second);
  }

 private:
  /// A list of candidates belongs to a group or to a path.
  struct ListId {
    bool of_path;
    std::uint32_t index;
  };

  static std::uint64_t index_seed(const HashSecret& secret) {
    KeyBuilder builder(secret, 0);
    builder.add(KeyPart::kCustom, "seed of the rules' indexes", {});
    return builder.finish().lo;
  }

  void add_path(const MatchSpec& match, RuleRecord& record) {
    record.path_kind = path_kind(match.path_match);
    if (match.path_match == PathMatch::kAny) return;
    record.path = text_.share(match.path);
    if (match.path_match != PathMatch::kGlob) return;
    GlobShape shape;
    const bool readable = read_glob(match.path, shape);
    POPGATE_ASSERT(readable);  // the rules' reader refused it otherwise
    record.glob_head_bytes = shape.head_bytes;
    record.glob_tail_bytes = shape.tail_bytes;
  }

  void add_methods(const std::vector<std::string>& methods, RuleRecord& record) {
    if (methods.empty()) return;
    POPGATE_ASSERT(methods.size() <= kRuleMethodsMax);
    std::string content;
    for (const std::string& method : methods) content += length_prefixed(method);
    record.methods_count = static_cast<std::uint8_t>(methods.size());
    record.methods_first = methods_.add(content, [&](std::vector<TextRecord>& records) {
      for (const std::string& method : methods) records.push_back(text_.share(method));
    });
  }

  void add_key(const std::vector<KeyPartSpec>& key, RuleRecord& record) {
    POPGATE_ASSERT(key.size() <= kKeyPartsMax);
    std::string content;
    for (const KeyPartSpec& part : key) {
      content += {static_cast<char>(part.type), static_cast<char>(part.v4_prefix), static_cast<char>(part.v6_prefix)};
      content += length_prefixed(part.name);
    }
    record.key_parts_count = static_cast<std::uint8_t>(key.size());
    record.key_parts_first = keys_.add(content, [&](std::vector<KeyPartRecord>& records) {
      for (const KeyPartSpec& part : key)
        records.push_back({part.type, part.v4_prefix, part.v6_prefix, 0, text_.share(part.name)});
    });
  }

  std::uint32_t group_for(const MatchSpec& match) {
    const GroupKind kind = group_kind(match.host_match);
    const std::string_view host = kind == GroupKind::kHostless ? std::string_view() : std::string_view(match.host);
    const auto [place, is_new] = known_groups_.try_emplace(HostKey{kind, host}, narrow(groups_.size()));
    if (!is_new) return place->second;
    groups_.push_back({text_.append(host), kind, 0, 0});
    group_hashes_.push_back(index_hash(host_seed(seed_, kind), host));
    if (kind == GroupKind::kHostless) hostless_group_ = place->second;
    if (kind == GroupKind::kSuffix) suffix_bytes_max_ = std::max(suffix_bytes_max_, narrow(host.size()));
    return place->second;
  }

  ListId list_for(const MatchSpec& match) {
    const std::uint32_t group = group_for(match);
    if (match.path_match != PathMatch::kExact) return {false, group};
    const auto [place, is_new] = known_paths_.try_emplace(PathKey{group, match.path}, narrow(paths_.size()));
    if (is_new) {
      paths_.push_back({text_.share(match.path), group, 0, 0});
      path_hashes_.push_back(index_hash(path_seed(seed_, group), match.path));
    }
    return {true, place->second};
  }

  std::uint32_t& count_of(ListId list) {
    return list.of_path ? paths_[list.index].candidates_count : groups_[list.index].candidates_count;
  }
  std::uint32_t first_of(ListId list) const {
    return list.of_path ? paths_[list.index].candidates_first : groups_[list.index].candidates_first;
  }

  /// Counts each list, places it, and fills it in the order of the rules, so that it ascends.
  std::vector<std::uint32_t> lay_out_candidates() {
    for (const ListId list : list_of_rule_) ++count_of(list);
    std::uint32_t next = 0;
    const auto place = [&next](auto& record) {
      record.candidates_first = next;
      next += record.candidates_count;
      record.candidates_count = 0;
    };
    for (GroupRecord& group : groups_) place(group);
    for (PathRecord& path : paths_) place(path);
    std::vector<std::uint32_t> candidates(rules_.size());
    for (std::uint32_t i = 0; i < list_of_rule_.size(); ++i) {
      candidates[first_of(list_of_rule_[i]) + count_of(list_of_rule_[i])++] = i;
    }
    return candidates;
  }

  std::vector<std::uint32_t> number_table() const {
    RuleNumber last = 0;
    for (const RuleRecord& rule : rules_) last = std::max(last, rule.number);
    POPGATE_ASSERT(last < kRuleNumbersMax);
    std::vector<std::uint32_t> numbers(rules_.empty() ? 0 : last + 1, kNoRecord);
    for (std::uint32_t i = 0; i < rules_.size(); ++i) numbers[rules_[i].number] = i;
    return numbers;
  }

  HashSecrets secrets_;
  std::uint64_t seed_;
  TextPool text_;
  ListPool<KeyPartRecord> keys_;
  ListPool<TextRecord> methods_;
  std::vector<TrustedRecord> trusted_;
  std::vector<RuleRecord> rules_;
  std::vector<ListId> list_of_rule_;
  std::vector<std::uint64_t> name_hashes_;
  std::vector<GroupRecord> groups_;
  std::vector<std::uint64_t> group_hashes_;
  std::unordered_map<HostKey, std::uint32_t, PlaceHash> known_groups_;
  std::vector<PathRecord> paths_;
  std::vector<std::uint64_t> path_hashes_;
  std::unordered_map<PathKey, std::uint32_t, PlaceHash> known_paths_;
  std::uint32_t suffix_bytes_max_ = 0;
  std::uint32_t hostless_group_ = kNoRecord;
};

}  // namespace

std::vector<std::byte> compile_rules(const RuleSet& rules, const HashSecrets& secrets,
                                     const std::vector<AddressRange>& trusted_proxies) {
  POPGATE_ASSERT(rules.all().size() <= kRuleNumbersMax && trusted_proxies.size() <= kTrustedRangesMax);
  Compiler compiler(secrets);
  for (const Rule& rule : rules.all()) {
    if (rule.enabled) compiler.add(rule);
  }
  for (const AddressRange& range : trusted_proxies) compiler.trust(range);
  return compiler.finish(rules.revision());
}

}  // namespace popgate
