// SPDX-License-Identifier: Apache-2.0
//
// What a member of a PoP of the nodes a and b says when it does everything right; tests spoil it.
//
// Threads: the test's.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/peers/hello.h"
#include "daemon/peers/wire.h"
#include "tests/daemon/mitigate/samples.h"

namespace popgate {

inline wire::Hello hello_as(const std::string& node, std::uint64_t incarnation = 1000) {
  wire::Hello hello;
  hello.version_min = kMeshVersionMin;
  hello.version_max = kMeshVersionMax;
  hello.pop = "test";
  hello.node = node;
  hello.incarnation = incarnation;
  hello.secret_id = 1;
  hello.members = {"a", "b"};
  hello.host = HostClock::now();
  return hello;
}

/// A decision of node b, for a minute.
inline wire::Entry entry_of(std::uint64_t sequence, const Key& key) {
  wire::Entry entry;
  entry.sequence = sequence;
  entry.host = HostClock::now();
  entry.remaining = minutes(1);
  entry.mitigation.key = key;
  entry.mitigation.rule = 7;
  entry.mitigation.rule_revision = sample_rule().revision;
  entry.mitigation.version = {0, sequence, node_id("b"), 1000};
  return entry;
}

}  // namespace popgate
