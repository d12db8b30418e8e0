// SPDX-License-Identifier: Apache-2.0
#include "daemon/config.h"

#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "daemon/cluster_reader.h"
#include "daemon/config_section.h"
#include "daemon/hash_secret.h"
#include "daemon/rules_reader.h"
#include "daemon/yaml_tree.h"

namespace popgate {
namespace {

constexpr std::pair<std::string_view, std::string_view> kLogLevels[] = {
    {"trace", "trace"}, {"debug", "debug"},       {"info", "info"}, {"warning", "warning"},
    {"error", "error"}, {"critical", "critical"}, {"off", "off"}};

/// Four octal digits; anybody may be let in, nobody execute.
void read_socket_mode(const Section& top, Config& config) {
  std::string_view text;
  if (!top.read_scalar("worker_socket_mode", text)) return;
  std::uint32_t mode = 0;
  bool right = text.size() == 4 && text.front() == '0';
  for (const char c : text) {
    right = right && c >= '0' && c <= '7';
    mode = mode * 8 + static_cast<std::uint32_t>(c - '0');
  }
  if (right && (mode & 0111) == 0 && (mode & 0600) == 0600)
    config.worker_socket_mode = mode;
  else
    top.fault("worker_socket_mode", allowed_text(top.option("worker_socket_mode")));
}

void read_socket_group(const Section& top, std::string_view leaf, std::optional<std::string>& out) {
  if (!top.has(leaf)) return;
  std::string group;
  if (top.read(leaf, group)) out = group;
}

void read_socket_path(const Section& top, std::string_view leaf, std::string standard, std::string& out) {
  out = std::move(standard);
  (void)top.read(leaf, out);
  if (out.size() > kUnixPathBytesMax)
    top.fault(leaf, "at most " + std::to_string(kUnixPathBytesMax) +
                        " bytes (a Unix socket's path); from run_dir it is " + std::to_string(out.size()));
}

void read_places(const Section& top, Config& config) {
  (void)top.read("run_dir", config.run_dir);
  (void)top.read("state_dir", config.state_dir);
  read_socket_path(top, "worker_socket", config.run_dir + "/workers.sock", config.worker_socket);
  read_socket_path(top, "admin_socket", config.run_dir + "/admin.sock", config.admin_socket);
  if (config.worker_socket == config.admin_socket) top.fault("admin_socket", "another path than worker_socket");
  read_socket_group(top, "worker_socket_group", config.worker_socket_group);
  read_socket_group(top, "admin_socket_group", config.admin_socket_group);
  if (config.worker_socket_group) config.worker_socket_mode = 0660;
  read_socket_mode(top, config);
}

void read_numbers(const Section& top, Config& config) {
  (void)top.read("flush_interval", config.flush_interval);
  (void)top.read("clock_tolerance", config.clock_tolerance);
  if (top.read("table_entries", config.table_entries) && !std::has_single_bit(config.table_entries))
    top.fault("table_entries", allowed_text(top.option("table_entries")));
  (void)top.read("keys_max", config.keys_max);
  (void)top.read("workers_max", config.workers_max);
}

void read_second_secret_file(const Section& top, Config& config) {
  std::string file;
  const bool next = top.read_file("hash_secret_next_file", file);
  const bool former = top.read_file("hash_secret_former_file", file);
  if (next && former) top.fault("hash_secret_former_file", "either this or hash_secret_next_file: two secrets at once");
  if (!next && !former) return;
  if (!top.has("hash_secret_file")) {
    top.fault_missing("hash_secret_file", "the file of the present secret, when there is a next or a former one");
  }
  config.second_secret_file = file;
  config.secrets.use = next ? SecondSecret::kCounted : SecondSecret::kChecked;
}

void read_secret_files(const Section& top, Config& config) {
  std::string file;
  if (top.read_file("hash_secret_file", file)) {
    config.hash_secret_file = file;
  } else if (top.has("hash_secret_file")) {
    return;  // and that is a fault already
  } else if (top.has("counters") || top.has("mesh")) {
    top.fault_missing("hash_secret_file",
                      "a file with 32 hexadecimal digits: nodes that share counters or a mesh must hash keys alike");
  }
  read_second_secret_file(top, config);
}

void read_all(const Section& top, Config& config) {
  (void)top.read("node", config.node);
  (void)top.read("pop", config.pop);
  read_places(top, config);
  std::string_view level = config.log_level;
  (void)top.read_choice<std::string_view>("log_level", kLogLevels, level);
  config.log_level = level;
  read_numbers(top, config);
  read_secret_files(top, config);
  read_trusted_proxies(top, config);
  read_counters(top, config);
  read_mesh(top, config);
}

bool load_into(const Section& top, std::string_view leaf, const std::string& path, HashSecret& out) {
  const auto secret = load_secret(path);
  if (secret)
    out = *secret;
  else
    top.fault(leaf, "a secret that can be read: " + secret.error());
  return secret.ok();
}

void load_secrets(const Section& top, Config& config) {
  if (!config.hash_secret_file) return;
  const bool first = load_into(top, "hash_secret_file", *config.hash_secret_file, config.secrets.first);
  if (!config.second_secret_file) return;
  const std::string_view leaf =
      config.secrets.use == SecondSecret::kCounted ? "hash_secret_next_file" : "hash_secret_former_file";
  const bool second = load_into(top, leaf, *config.second_secret_file, config.secrets.second);
  if (first && second && config.secrets.first == config.secrets.second)
    top.fault(leaf, "another secret than that of hash_secret_file");
}

ConfigOutcome outcome_of(Config config, FaultList& faults) {
  if (faults.empty()) return {std::move(config), {}};
  return {std::nullopt, faults.take()};
}

ConfigOutcome one_fault(ConfigFault fault) {
  ConfigOutcome outcome;
  outcome.faults.push_back(std::move(fault));
  return outcome;
}

ConfigOutcome read_text(const std::string& text, const std::string& file_name, bool with_files) {
  if (text.size() > kConfigBytesMax)
    return one_fault({file_name, 0, 0, "", std::to_string(text.size()) + " bytes",
                      "at most " + std::to_string(kConfigBytesMax) + " bytes"});
  YamlTree tree;
  if (YamlError error; !tree.parse(text, error))
    return one_fault({file_name, error.line, error.column, "", "what is not YAML: " + error.text, error.allowed});
  Config config;
  config.file = file_name;
  FaultList faults(file_name);
  const OptionSections sections;
  const ConfigReading reading{sections, faults};
  const FieldPath path;
  // An empty file is an empty map: every option has its default.
  YamlTree nothing;
  YamlError none;
  const bool empty = tree.root().kind() == YamlKind::kNull && nothing.parse("{}", none);
  const Section top(reading, path, empty ? nothing.root() : tree.root(), "");
  read_all(top, config);
  if (top.has("rules")) {
    auto rules = read_rules(top, config.clock_tolerance);
    if (faults.empty()) config.rules = RuleSet(std::move(rules));
  }
  if (with_files && faults.empty()) load_mesh_files(top, config);
  if (with_files) load_secrets(top, config);
  return outcome_of(std::move(config), faults);
}

}  // namespace

std::string ConfigFault::text() const {
  std::string text = file;
  if (line > 0) text += ":" + std::to_string(line) + ":" + std::to_string(column);
  text += ": ";
  if (!field.empty()) text += field + ": ";
  text += "found " + found;
  return allowed.empty() ? text : text + ", allowed: " + allowed;
}

ConfigOutcome parse_config(const std::string& text, const std::string& file_name) {
  return read_text(text, file_name, false);
}

ConfigOutcome load_config(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  // An empty file is a right one. A folder fails at the first byte.
  const bool empty = file.peek() == std::ifstream::traits_type::eof() && !file.bad() && file.is_open();
  if (empty) return read_text("", path, true);
  std::string text;
  char piece[65536];
  while (text.size() <= kConfigBytesMax && file.read(piece, sizeof piece).gcount() > 0) {
    text.append(piece, static_cast<std::size_t>(file.gcount()));
  }
  if (text.empty()) {
    return one_fault({path, 0, 0, "", std::string("a file that cannot be read: ") + std::strerror(errno), ""});
  }
  return read_text(text, path, true);
}

}  // namespace popgate
