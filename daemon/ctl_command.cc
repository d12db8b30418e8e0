// SPDX-License-Identifier: Apache-2.0
#include "daemon/ctl_command.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "daemon/admin_request.h"
#include "daemon/duration.h"
#include "daemon/rules.h"
#include "libclient/key.h"

namespace popgate {
namespace {

constexpr const char* kStandardSocket = "/run/popgate/admin.sock";
constexpr const char* kExitStatuses =
    "Exit status: 0 done; 1 refused by the daemon, not ready, or a ring that disagrees, with its sentence on stderr;\n"
    "2 the command line is wrong; 3 the daemon cannot be reached or does not answer.";
constexpr const char* kTarget =
    "KEY (32 hexadecimal digits), or RULE and a value for each part of its key (- for none)";

// The key that a command is about, as it stands on the command line.
struct Target {
  std::vector<std::string> words;

  [[nodiscard]] bool is_key() const {
    Key key;
    return words.size() == 1 && parse_key_text(words.front(), key);
  }
  [[nodiscard]] std::string query() const {
    if (is_key()) return "key=" + percent_encode(words.front());
    std::string query = "rule=" + percent_encode(words.front());
    for (std::size_t i = 1; i < words.size(); ++i) query += "&value=" + percent_encode(words[i]);
    return query;
  }
  void put_into(nlohmann::json& body) const {
    if (is_key()) {
      body["key"] = words.front();
      return;
    }
    body["rule"] = words.front();
    body["values"] = std::vector<std::string>(words.begin() + 1, words.end());
  }
};

// What CLI11 writes to; made into a CtlCommand when everything is read.
struct Parsed {
  Target target;
  std::string reason;
  std::chrono::milliseconds block_for{0};
  std::string rule;
  std::string key;
  std::string by;
  std::string kind;
  std::optional<std::uint64_t> limit;
  std::string state;  // of enforce: "on", "off", or empty to look
  bool pop = false;
  std::string secret_file;
};

CLI::Option* add_duration(CLI::App& app, const std::string& name, const std::string& meaning,
                          std::chrono::milliseconds& out, bool required = false) {
  const auto take = [&out](const std::string& text) {
    out = std::chrono::ceil<std::chrono::milliseconds>(*parse_duration(text));
  };
  return app.add_option_function<std::string>(name, take, meaning)
      ->type_name("DURATION")
      ->required(required)
      ->check([](const std::string& text) {
        if (parse_duration(text)) return std::string();
        return "found \"" + text + "\", allowed: a number and its unit, as in 500ms, 60s, 5m, 1h, 2d";
      });
}

void add_target(CLI::App& app, Target& target) {
  app.add_option("TARGET", target.words, kTarget)->required()->type_name("");
}

void check_target(const Target& target) {
  if (target.words.size() != 1 || target.is_key()) return;
  throw CLI::ValidationError("TARGET", "\"" + target.words.front() +
                                           "\" is no key (32 hexadecimal digits); a rule needs the values of its key "
                                           "behind it");
}

void add_looking(CLI::App& app, CtlCommand& command, Parsed& parsed) {
  app.add_subcommand("status", "Is the node well? Shards, peers, workers, mitigations");
  CLI::App* ready = app.add_subcommand("ready", "Are all shards and peers connected?");
  add_duration(*ready, "--wait", "Wait so long for it, also for the daemon itself", command.wait);
  ready->add_flag("--quiet", command.quiet, "Print nothing; the exit status says it");
  app.add_subcommand("peers", "The other nodes: connected, up to date, how fast they enforce");
  CLI::App* rules = app.add_subcommand("rules", "The rules, and where every hit of each went");
  rules->add_option("--rule", parsed.rule, "Only this rule");
  rules->add_option("--limit", parsed.limit, "So many (1000)")->check(CLI::Range(1, 10'000));
  rules->add_option("--offset", command.offset, "After so many");
  CLI::App* mitigations = app.add_subcommand("mitigations", "Who is blocked, until when, by whom, on what evidence");
  mitigations->add_option("--rule", parsed.rule, "Only of this rule");
  mitigations->add_option("--key", parsed.key, "Only of this key");
  mitigations->add_option("--by", parsed.by, "Only decided by this node");
  mitigations->add_option("--kind", parsed.kind, "Only these")->check(CLI::IsMember({"automatic", "operator", "lift"}));
  mitigations->add_option("--limit", parsed.limit, "So many (1000)")->check(CLI::Range(1, 10'000));
  mitigations->add_option("--offset", command.offset, "After so many");
  CLI::App* explain = app.add_subcommand("explain", "Everything that the node knows about one client under one rule");
  add_target(*explain, parsed.target);
  app.add_subcommand("metrics", "Every figure of every stage, in the Prometheus text format");
}

void add_enforce(CLI::App& app, Parsed& parsed) {
  CLI::App* enforce = app.add_subcommand(
      "enforce", "Stop blocking (off) or go on (on), at once, while counting goes on; alone: what is off");
  enforce->add_option("STATE", parsed.state, "on or off")->check(CLI::IsMember({"on", "off"}))->type_name("");
  enforce->add_option("RULE", parsed.rule, "Only what this rule decided; without it everything, operators' blocks too")
      ->type_name("");
  enforce->add_flag("--pop", parsed.pop, "On every node of the PoP; without it on this node");
  enforce->add_option("--reason", parsed.reason, "For whoever asks later; at most 256 bytes");
}

void check_enforce(const std::string& name, const Parsed& parsed) {
  const bool says_more = parsed.pop || !parsed.reason.empty();
  if (name != "enforce" || !parsed.state.empty() || !says_more) return;
  throw CLI::ValidationError("STATE", "--pop and --reason need on or off");
}

void add_acting(CLI::App& app, Parsed& parsed) {
  CLI::App* block = app.add_subcommand("block", "Block a client on every node");
  add_target(*block, parsed.target);
  add_duration(*block, "--for", "How long: 1ms to 14d", parsed.block_for, true)->check([](const std::string& text) {
    const auto duration = parse_duration(text).value_or(std::chrono::microseconds(0));
    const bool allowed = duration > std::chrono::microseconds(0) && duration <= kMitigationMax;
    return allowed ? std::string() : "found \"" + text + "\", allowed: 1ms to 14d";
  });
  block->add_option("--reason", parsed.reason, "For whoever asks later; at most 256 bytes");
  CLI::App* lift = app.add_subcommand("lift", "End every mitigation of a client on every node, and forget its hits");
  add_target(*lift, parsed.target);
  lift->add_option("--reason", parsed.reason, "For whoever asks later; at most 256 bytes");
  app.add_subcommand("reload", "Read the configuration file again; a bad one changes nothing");
  app.add_subcommand("ring-check", "Do twemproxy and libmemcached place keys alike?");
}

// `secret new FILE`, `secret id FILE`: for whoever sets a PoP up.
void add_secret(CLI::App& app, Parsed& parsed) {
  CLI::App* secret = app.add_subcommand("secret", "Files of hash secrets; asks no daemon");
  secret->require_subcommand(1);
  CLI::App* make = secret->add_subcommand("new", "Makes a new secret in FILE, mode 0600, and prints its id");
  make->add_option("FILE", parsed.secret_file, "Must not exist")->required()->type_name("");
  CLI::App* id = secret->add_subcommand("id", "Prints the id of the secret in FILE, as `status` and `peers` show it");
  id->add_option("FILE", parsed.secret_file, "Of mode 0600 or 0400")->required()->type_name("");
}

std::string looking_query(const Parsed& parsed, std::uint64_t offset) {
  std::string query;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) query.append(query.empty() ? "?" : "&").append(name).append("=").append(percent_encode(value));
  };
  add("rule", parsed.rule);
  add("key", parsed.key);
  add("by", parsed.by);
  add("kind", parsed.kind);
  add("limit", parsed.limit ? std::to_string(*parsed.limit) : "");
  add("offset", offset > 0 ? std::to_string(offset) : "");
  return query;
}

std::string order_body(const std::string& name, const Parsed& parsed) {
  nlohmann::json body = nlohmann::json::object();
  parsed.target.put_into(body);
  if (name == "block") body["for_ms"] = parsed.block_for.count();
  if (!parsed.reason.empty()) body["reason"] = parsed.reason;
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string enforce_body(const Parsed& parsed) {
  nlohmann::json body = {{"state", parsed.state}, {"pop", parsed.pop}};
  if (!parsed.rule.empty()) body["rule"] = parsed.rule;
  if (!parsed.reason.empty()) body["reason"] = parsed.reason;
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

CtlRequest request_of(const CtlCommand& command, const Parsed& parsed) {
  const std::string& name = command.name;
  const std::string path = "/" + name;
  if (name == "mitigations" || name == "rules") return {"GET", path + looking_query(parsed, command.offset), ""};
  if (name == "explain") return {"GET", path + "?" + parsed.target.query(), ""};
  if (name == "block" || name == "lift") return {"POST", path, order_body(name, parsed)};
  if (name == "enforce" && !parsed.state.empty()) return {"POST", path, enforce_body(parsed)};
  if (name == "reload" || name == "ring-check") return {"POST", path, ""};
  return {"GET", path, ""};
}

}  // namespace

std::optional<CtlCommand> read_ctl_command(int argc, char** argv, int& exit_status) {
  CtlCommand command;
  Parsed parsed;
  CLI::App app("Looks into popgated and gives it orders, over its admin socket.", "popgatectl");
  app.set_version_flag("--version", "popgatectl " POPGATE_VERSION);
  app.require_subcommand(1);
  app.fallthrough();  // --json may stand behind the command too
  app.footer(kExitStatuses);
  CLI::Option* socket = app.add_option("--socket", command.socket_path, "The daemon's admin socket")
                            ->envname("POPGATE_ADMIN_SOCKET")
                            ->default_str(kStandardSocket);
  app.add_flag("--json", command.json, "Print the daemon's JSON as it came (docs/admin-api.md)");
  add_duration(app, "--timeout", "How long the daemon may take to answer (30s)", command.timeout);
  add_looking(app, command, parsed);
  add_acting(app, parsed);
  add_enforce(app, parsed);
  add_secret(app, parsed);
  try {
    app.parse(argc, argv);
    if (!parsed.target.words.empty()) check_target(parsed.target);
    check_enforce(app.get_subcommands().front()->get_name(), parsed);
  } catch (const CLI::ParseError& error) {
    exit_status = app.exit(error) == 0 ? kCtlDone : kCtlUsage;
    return std::nullopt;
  }
  command.called = socket->count() > 0 ? "popgatectl --socket " + command.socket_path : "popgatectl";
  if (command.socket_path.empty()) command.socket_path = kStandardSocket;
  command.name = app.get_subcommands().front()->get_name();
  if (command.name == "secret") {
    command.name += "-" + app.get_subcommands().front()->get_subcommands().front()->get_name();
    command.secret_file = parsed.secret_file;
    return command;
  }
  command.request = request_of(command, parsed);
  return command;
}

}  // namespace popgate
