// SPDX-License-Identifier: Apache-2.0
//
// The configuration of one node, read from one YAML file.
//
// Every option stands in one table (config_options.cc): path, type, default, unit, range, meaning. The reader, the
// errors, `popgated --print-options` and the manual all come from it. Everything that is wrong with a file is reported
// in one go, each fault with file, line, column, field, what was found and what is allowed; a file with any fault is
// not used.
//
// Threads: a Config is a value.
// Limits: kConfigBytesMax a file; kConfigFaultsMax faults are listed, and one more says that there are others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/endpoint.h"
#include "daemon/rules.h"
#include "daemon/tls_files.h"

namespace popgate {

inline constexpr std::size_t kConfigBytesMax = std::size_t{128} << 20;
inline constexpr std::size_t kConfigFaultsMax = 1000;
inline constexpr std::size_t kShardsMax = 256;
inline constexpr std::size_t kMembersMax = 64;  // of a mesh, this node included

struct ShardConfig {
  std::string name;  // what the ketama ring hashes: address and ring position are independent
  Endpoint address;
  std::uint32_t weight = 1;
  friend bool operator==(const ShardConfig&, const ShardConfig&) = default;
};

struct RingConfig {
  std::vector<ShardConfig> shards;
  std::optional<Endpoint> proxy;  // twemproxy; absent: straight to the shards
  friend bool operator==(const RingConfig&, const RingConfig&) = default;
};

struct CountersConfig : RingConfig {
  std::optional<RingConfig> also_read;  // while the shards change: read, never added to
  milliseconds timeout{400};            // a reply later than this ends the connection
  std::uint32_t batches_in_flight = 4;  // a connection
  std::uint32_t batch_keys_max = 1000;
  friend bool operator==(const CountersConfig&, const CountersConfig&) = default;
};

struct MemberConfig {
  std::string node;
  Endpoint address;
};

struct MeshTlsConfig {
  TlsFiles files;                    // absolute, or relative to the folder of the file that names them
  SharedTlsCredentials credentials;  // what load_config() read from them
};

struct MeshConfig {
  Endpoint listen;
  std::vector<MemberConfig> peers;   // the other members
  std::optional<MeshTlsConfig> tls;  // absent: plain text, on loopback only
};

struct Config {
  std::string file;
  std::string node = "node";
  std::string pop = "pop";
  std::string run_dir = "/run/popgate";            // tmpfs: sockets, table, rules, ledger
  std::string state_dir = "/var/lib/popgate";      // disk: record file
  std::string worker_socket;                       // default: run_dir/workers.sock
  std::string admin_socket;                        // default: run_dir/admin.sock
  std::uint32_t worker_socket_mode = 0600;         // 0660 with a group, when the file says nothing
  std::optional<std::string> worker_socket_group;  // by name or number
  std::optional<std::string> admin_socket_group;   // its mode is then 0660, else 0600
  std::string log_level = "info";
  milliseconds flush_interval{50};
  milliseconds clock_tolerance{20};
  std::uint32_t table_entries = 262144;
  std::uint32_t keys_max = 262144;  // keys whose windows the daemon holds
  std::uint32_t workers_max = 256;
  std::optional<std::string> hash_secret_file;  // absolute, or relative to the folder of the file that names it
  /// Of hash_secret_file. All zeros without one: a single node's daemon then takes load_or_create_secret() of
  /// own_secret_file(), which a mere check of the file must not do.
  HashSecrets secrets;
  /// The file of the second secret, while one secret takes another's place; what it is for is in `secrets.use`.
  std::optional<std::string> second_secret_file;
  std::optional<CountersConfig> counters;  // absent: counters live in the daemon (a PoP of one node)
  std::optional<MeshConfig> mesh;          // absent: a PoP of one node
  std::vector<AddressRange> trusted_proxies;
  RuleSet rules;  // rule numbers in file order; the daemon renumbers them through its ledger

  /// Where a single node without hash_secret_file keeps the secret that it made.
  [[nodiscard]] std::string own_secret_file() const { return state_dir + "/hash.secret"; }
};

struct ConfigFault {
  std::string file;
  int line = 0;                            // from 1; 0: the file as a whole
  int column = 0;                          // from 1
  std::string field;                       // "rules[2].window"
  std::string found;                       // a value in quotes, or what it is: "a list", "nothing"
  std::string allowed;                     // empty: `found` says it all (a syntax error)
  [[nodiscard]] std::string text() const;  // popgate.yaml:12:13: rules[2].window: found "60", allowed: …
};

struct ConfigOutcome {
  std::optional<Config> config;     // absent when there is any fault
  std::vector<ConfigFault> faults;  // in the order of the file
};

/// Reads the file, and the files that it names: hash_secret_file, those of mesh.tls.
[[nodiscard]] ConfigOutcome load_config(const std::string& path);
/// The same for a text, without touching any file: the secret stays all zeros, the credentials null.
[[nodiscard]] ConfigOutcome parse_config(const std::string& text, const std::string& file_name);

}  // namespace popgate
