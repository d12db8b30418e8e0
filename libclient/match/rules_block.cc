// SPDX-License-Identifier: Apache-2.0
#include "libclient/match/rules_block.h"

#include <bit>

#include "libclient/match/glob.h"

namespace popgate {
namespace {

constexpr std::size_t kAlignment = 8;

template <typename Record>
bool locate(std::span<const std::byte> bytes, const RulesSection& section, std::span<const Record>& out) noexcept {
  if (section.offset % kAlignment != 0 || section.offset > bytes.size()) return false;
  if (section.count > (bytes.size() - section.offset) / sizeof(Record)) return false;
  out = {reinterpret_cast<const Record*>(bytes.data() + section.offset), static_cast<std::size_t>(section.count)};
  return true;
}

// By the version: the header alone, or the header and a second secret.
const char* locate_second_secret(std::span<const std::byte> bytes, RulesBlock& block) noexcept {
  const RulesHeader& header = *block.header;
  if (header.version == kRulesVersion) {
    return header.header_bytes == sizeof(RulesHeader) ? nullptr : "a header of another length";
  }
  if (header.version != kRulesVersionTwoSecrets) return "a block of rules of another version";
  if (header.header_bytes != sizeof(RulesHeader) + sizeof(SecondSecretRecord)) return "a header of another length";
  if (bytes.size() < header.header_bytes) return "shorter than a header";
  block.second_secret = reinterpret_cast<const SecondSecretRecord*>(bytes.data() + sizeof(RulesHeader));
  const std::uint32_t use = block.second_secret->use;
  const bool known = use == static_cast<std::uint32_t>(SecondSecret::kCounted) ||
                     use == static_cast<std::uint32_t>(SecondSecret::kChecked);
  return known ? nullptr : "a second secret of unknown use";
}

const char* locate_header(std::span<const std::byte> bytes, RulesBlock& block) noexcept {
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % kAlignment != 0) return "the block is not aligned";
  if (bytes.size() < sizeof(RulesHeader)) return "shorter than a header";
  if (bytes.size() > kRulesBytesMax) return "longer than a block may be";
  block.header = reinterpret_cast<const RulesHeader*>(bytes.data());
  if (block.header->magic != kRulesMagic) return "not a block of rules";
  if (const char* reason = locate_second_secret(bytes, block)) return reason;
  if (block.header->total_bytes != bytes.size()) return "longer or shorter than the header says";
  return nullptr;
}

const char* locate_sections(std::span<const std::byte> bytes, RulesBlock& block) noexcept {
  const RulesHeader& header = *block.header;
  const bool inside =
      locate(bytes, header.text, block.text) && locate(bytes, header.trusted, block.trusted) &&
      locate(bytes, header.rules, block.rules) && locate(bytes, header.numbers, block.numbers) &&
      locate(bytes, header.key_parts, block.key_parts) && locate(bytes, header.methods, block.methods) &&
      locate(bytes, header.groups, block.groups) && locate(bytes, header.paths, block.paths) &&
      locate(bytes, header.candidates, block.candidates) && locate(bytes, header.host_index, block.host_index) &&
      locate(bytes, header.path_index, block.path_index) && locate(bytes, header.name_index, block.name_index);
  if (!inside) return "a section lies outside the block";
  const bool few = block.rules.size() <= kRuleNumbersMax && block.numbers.size() <= kRuleNumbersMax &&
                   block.groups.size() <= kRuleNumbersMax && block.paths.size() <= kRuleNumbersMax &&
                   block.trusted.size() <= kTrustedRangesMax;
  return few ? nullptr : "more records than a section may have";
}

bool text_inside(const RulesBlock& block, const TextRecord& record) noexcept {
  return record.offset <= block.text.size() && record.bytes <= block.text.size() - record.offset;
}

bool range_inside(std::uint64_t first, std::uint64_t count, std::size_t records) noexcept {
  return first + count <= records;  // both come from 32 bits: no overflow
}

bool glob_is_right(const RulesBlock& block, const RuleRecord& rule) noexcept {
  if (rule.path_kind != PathKind::kGlob) return true;
  GlobShape shape;
  return read_glob(block.text_of(rule.path), shape) && shape.head_bytes == rule.glob_head_bytes &&
         shape.tail_bytes == rule.glob_tail_bytes;
}

const char* check_rule(const RulesBlock& block, const RuleRecord& rule, std::size_t index) noexcept {
  if (rule.number >= block.numbers.size() || block.numbers[rule.number] != index) return "a rule's number is wrong";
  if (!text_inside(block, rule.name) || rule.name.bytes > kRuleNameBytesMax) return "a rule's name is wrong";
  if (!text_inside(block, rule.path) || rule.path.bytes > kRulePathBytesMax) return "a rule's path is wrong";
  if (rule.path_kind > PathKind::kGlob) return "a rule's kind of path is unknown";
  if (!glob_is_right(block, rule)) return "a rule's glob is wrong";
  if (rule.methods_count > kRuleMethodsMax ||
      !range_inside(rule.methods_first, rule.methods_count, block.methods.size()))
    return "a rule's methods are wrong";
  if (rule.key_parts_count > kKeyPartsMax ||
      !range_inside(rule.key_parts_first, rule.key_parts_count, block.key_parts.size()))
    return "a rule's key is wrong";
  return nullptr;
}

const char* check_rules(const RulesBlock& block) noexcept {
  for (std::size_t i = 0; i < block.rules.size(); ++i) {
    if (const char* reason = check_rule(block, block.rules[i], i)) return reason;
  }
  for (const std::uint32_t index : block.numbers) {
    if (index != kNoRecord && index >= block.rules.size()) return "a rule number leads nowhere";
  }
  for (const std::uint32_t index : block.candidates) {
    if (index >= block.rules.size()) return "a candidate leads nowhere";
  }
  return nullptr;
}

const char* check_parts(const RulesBlock& block) noexcept {
  for (const KeyPartRecord& part : block.key_parts) {
    if (part.type < KeyPart::kClientIp || part.type > KeyPart::kMethod) return "a part of a key is of unknown type";
    if (part.v4_prefix > 32 || part.v6_prefix > 128) return "a prefix is longer than an address";
    if (!text_inside(block, part.name)) return "the name of a part lies outside the text";
  }
  for (const TextRecord& method : block.methods) {
    if (!text_inside(block, method)) return "a method lies outside the text";
  }
  for (const TrustedRecord& range : block.trusted) {
    if ((range.bytes != 4 && range.bytes != 16) || range.prefix_bits > range.bytes * 8) return "a range is wrong";
  }
  return nullptr;
}

const char* check_groups(const RulesBlock& block) noexcept {
  for (const GroupRecord& group : block.groups) {
    if (group.kind > GroupKind::kSuffix || !text_inside(block, group.host)) return "a group's host is wrong";
    if (!range_inside(group.candidates_first, group.candidates_count, block.candidates.size()))
      return "a group's list lies outside its section";
  }
  for (const PathRecord& path : block.paths) {
    if (path.group >= block.groups.size() || !text_inside(block, path.path)) return "a path's group or text is wrong";
    if (!range_inside(path.candidates_first, path.candidates_count, block.candidates.size()))
      return "a path's list lies outside its section";
  }
  const std::uint32_t hostless = block.header->hostless_group;
  if (hostless != kNoRecord && hostless >= block.groups.size()) return "the group without a host leads nowhere";
  return nullptr;
}

bool index_is_right(std::span<const std::uint32_t> slots, std::size_t records) noexcept {
  if (!slots.empty() && !std::has_single_bit(slots.size())) return false;
  for (const std::uint32_t slot : slots) {
    const std::uint32_t item = slot & kIndexItemMask;
    if (slot != 0 && (item == 0 || item > records)) return false;
  }
  return true;
}

const char* check_indexes(const RulesBlock& block) noexcept {
  const bool right = index_is_right(block.host_index, block.groups.size()) &&
                     index_is_right(block.path_index, block.paths.size()) &&
                     index_is_right(block.name_index, block.rules.size());
  return right ? nullptr : "an index leads nowhere";
}

}  // namespace

const char* open_block(std::span<const std::byte> bytes, RulesBlock& block) noexcept {
  const char* reason = locate_header(bytes, block);
  if (reason == nullptr) reason = locate_sections(bytes, block);
  if (reason == nullptr) reason = check_rules(block);
  if (reason == nullptr) reason = check_parts(block);
  if (reason == nullptr) reason = check_groups(block);
  if (reason == nullptr) reason = check_indexes(block);
  return reason;
}

}  // namespace popgate
