// SPDX-License-Identifier: Apache-2.0
#include "daemon/restart_needs.h"

#include <algorithm>

namespace popgate {
namespace {

bool same(const std::optional<MeshConfig>& a, const std::optional<MeshConfig>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->listen == b->listen && a->tls.has_value() == b->tls.has_value() &&
         std::ranges::equal(a->peers, b->peers, [](const MemberConfig& x, const MemberConfig& y) {
           return x.node == y.node && x.address == y.address;
         });
}

}  // namespace

HashSecrets secrets_after_reload(const Config& running, const Config& wanted) {
  if (!wanted.hash_secret_file) return running.secrets;
  const bool known = wanted.secrets.first == running.secrets.first ||
                     (running.secrets.use != SecondSecret::kNone && wanted.secrets.first == running.secrets.second);
  return known ? wanted.secrets : running.secrets;
}

std::vector<std::string> needs_restart(const Config& running, const Config& wanted) {
  std::vector<std::string> names;
  const auto note = [&](bool is_same, const char* name) {
    if (!is_same) names.emplace_back(name);
  };
  note(running.node == wanted.node, "node");
  note(running.pop == wanted.pop, "pop");
  note(running.run_dir == wanted.run_dir, "run_dir");
  note(running.state_dir == wanted.state_dir, "state_dir");
  note(running.worker_socket == wanted.worker_socket, "worker_socket");
  note(running.worker_socket_mode == wanted.worker_socket_mode, "worker_socket_mode");
  note(running.worker_socket_group == wanted.worker_socket_group, "worker_socket_group");
  note(running.admin_socket == wanted.admin_socket, "admin_socket");
  note(running.admin_socket_group == wanted.admin_socket_group, "admin_socket_group");
  note(running.flush_interval == wanted.flush_interval, "flush_interval");
  note(running.table_entries == wanted.table_entries, "table_entries");
  note(running.keys_max == wanted.keys_max, "keys_max");
  note(running.workers_max == wanted.workers_max, "workers_max");
  const bool own_secret = !running.hash_secret_file && !wanted.hash_secret_file;
  note(own_secret || secrets_after_reload(running, wanted) == wanted.secrets, "hash_secret_file");
  note(running.counters == wanted.counters, "counters");
  note(same(running.mesh, wanted.mesh), "mesh");
  return names;
}

}  // namespace popgate
