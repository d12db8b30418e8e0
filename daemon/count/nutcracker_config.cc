// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/nutcracker_config.h"

#include <algorithm>

#include "daemon/config.h"
#include "daemon/result.h"

namespace popgate {
namespace {

// As nutcracker reads it: without brackets around an IPv6 address, since it looks for the last colons.
std::string nutcracker_address(const Endpoint& endpoint) {
  if (!endpoint.unix_path.empty()) return endpoint.unix_path;
  return endpoint.host + ":" + std::to_string(endpoint.port);
}

}  // namespace

std::string nutcracker_yml(const Config& config) {
  POPGATE_ASSERT(config.counters && config.counters->proxy);
  const CountersConfig& counters = *config.counters;
  const auto timeout_ms = nutcracker_timeout_ms(static_cast<int>(counters.timeout.count()));
  std::string yml =
      "# Made from the counters section of a Popgate configuration (popgated --print-nutcracker): do not edit.\n"
      "# Start it with `nutcracker -c FILE -m 512 -a 127.0.0.1`; twemproxy-config/README.md says why.\n";
  yml += config.pop + ":\n";
  yml += "  listen: " + nutcracker_address(*counters.proxy) + "\n";
  yml += "  hash: md5\n";
  yml += "  hash_tag: \"{}\"\n";
  yml += "  distribution: ketama\n";
  yml += "  timeout: " + std::to_string(std::max(timeout_ms, 1)) + "\n";
  yml += "  preconnect: true\n";
  yml += "  auto_eject_hosts: false\n";
  yml += "  server_connections: 1\n";
  yml += "  servers:\n";
  for (const ShardConfig& shard : counters.shards) {
    yml += "    - " + nutcracker_address(shard.address) + ":" + std::to_string(shard.weight) + " " + shard.name + "\n";
  }
  return yml;
}

}  // namespace popgate
