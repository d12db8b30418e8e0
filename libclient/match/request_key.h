// SPDX-License-Identifier: Apache-2.0
//
// A rule's key for a request: its parts in the order of the rule's list, each present or missing, hashed by KeyBuilder.
//
// Threads: pure.
// Invariants: 1. Every part of the list adds exactly one part to the key, so that keys of one rule cannot run together.
#pragma once

#include "libclient/key.h"
#include "libclient/match/normal_request.h"
#include "libclient/match/rules_block.h"

namespace popgate {

/// A rule of the block that the request belongs to.
struct KeyedRequest {
  const RulesBlock& block;
  const RuleRecord& rule;
  const NormalRequest& request;
};

[[nodiscard]] Key request_key(const KeyedRequest& keyed, const HashSecret& secret) noexcept;

/// How many bits of an address a key keeps.
struct AddressPrefixes {
  std::uint8_t v4 = 32;
  std::uint8_t v6 = 64;
};

/// Adds a client address, cut to its prefix; an unknown one is missing. Also for addresses that a person typed.
void add_client(KeyBuilder& builder, AddressPrefixes prefixes, const ClientAddress& client) noexcept;

}  // namespace popgate
