// SPDX-License-Identifier: Apache-2.0
#include "libclient/match/rules_view.h"

#include <algorithm>
#include <iterator>

#include "libclient/match/rules_index.h"

namespace popgate {

bool RulesView::open(std::span<const std::byte> bytes, const char*& reason) noexcept {
  *this = {};
  RulesBlock block;
  reason = open_block(bytes, block);
  if (reason != nullptr) return false;
  bytes_ = bytes;
  block_ = block;
  return true;
}

std::uint64_t RulesView::revision() const noexcept { return empty() ? 0 : block_.header->revision; }

HashSecrets RulesView::secrets() const noexcept {
  HashSecrets secrets;
  if (empty()) return secrets;
  std::copy(std::begin(block_.header->secret), std::end(block_.header->secret), secrets.first.bytes.begin());
  if (const SecondSecretRecord* second = block_.second_secret) {
    std::copy(std::begin(second->secret), std::end(second->secret), secrets.second.bytes.begin());
    secrets.use = static_cast<SecondSecret>(second->use);
  }
  return secrets;
}

const RuleRecord* RulesView::find(std::string_view name) const noexcept {
  if (empty()) return nullptr;
  const std::uint32_t index =
      index_find(block_.name_index, index_hash(block_.header->index_seed, name),
                 [&](std::uint32_t rule) { return block_.text_of(block_.rules[rule].name) == name; });
  return index == kNoRecord ? nullptr : &block_.rules[index];
}

}  // namespace popgate
