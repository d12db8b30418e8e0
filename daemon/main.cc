// SPDX-License-Identifier: Apache-2.0
//
// popgated: the command line of the daemon.
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include "daemon/config.h"
#include "daemon/config_options.h"
#include "daemon/count/nutcracker_config.h"
#include "daemon/daemon.h"
#include "daemon/peers/tls_context.h"
#include "popgate/popgate.h"

namespace {

// Exit codes, as the manual states them.
constexpr int kOk = 0;
constexpr int kFailed = 1;     // the daemon could not start or had to stop
constexpr int kBadConfig = 2;  // the configuration has faults, or the command line has

std::optional<popgate::Config> load(const std::string& file) {
  popgate::ConfigOutcome outcome = popgate::load_config(file);
  for (const popgate::ConfigFault& fault : outcome.faults) std::fprintf(stderr, "%s\n", fault.text().c_str());
  if (!outcome.config) {
    std::fprintf(stderr, "popgated: %s has %zu fault%s and is not used\n", file.c_str(), outcome.faults.size(),
                 outcome.faults.size() == 1 ? "" : "s");
  }
  return std::move(outcome.config);
}

/// What OpenSSL refuses at a start although the files are in order as such.
bool tls_can_start(const std::string& file, const popgate::SharedTlsCredentials& credentials) {
  const auto context = popgate::TlsContext::make(credentials);
  if (!context) std::fprintf(stderr, "%s: mesh.tls: %s\n", file.c_str(), context.error().c_str());
  return context.ok();
}

int check(const std::string& file) {
  const auto config = load(file);
  if (!config) return kBadConfig;
  if (config->mesh && config->mesh->tls && !tls_can_start(file, config->mesh->tls->credentials)) return kBadConfig;
  std::printf("%s: no faults; node %s, %zu rule%s\n", file.c_str(), config->node.c_str(), config->rules.all().size(),
              config->rules.all().size() == 1 ? "" : "s");
  if (config->mesh && config->mesh->tls) {
    const std::string alarm = config->mesh->tls->credentials->alarm(popgate::PopClock::now());
    if (!alarm.empty()) std::printf("%s: warning: %s\n", file.c_str(), alarm.c_str());
  }
  return kOk;
}

int print_nutcracker(const std::string& file) {
  const auto config = load(file);
  if (!config) return kBadConfig;
  if (!config->counters || !config->counters->proxy) {
    std::fprintf(stderr, "popgated: %s: counters.proxy is not set, so there is no twemproxy to configure\n",
                 file.c_str());
    return kBadConfig;
  }
  std::fputs(popgate::nutcracker_yml(*config).c_str(), stdout);
  return kOk;
}

int run(const std::string& file) {
  std::signal(SIGHUP,
              SIG_IGN);  // a reload asked for during the start must not end it; the daemon's own handler follows
  auto config = load(file);
  if (!config) return kBadConfig;
  spdlog::set_default_logger(spdlog::stderr_color_mt("popgated"));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  spdlog::set_level(spdlog::level::from_str(config->log_level));
  auto daemon = popgate::Daemon::start(*std::move(config));
  if (!daemon) {
    spdlog::critical("cannot start: {}", daemon.error());
    return kFailed;
  }
  (*daemon)->run();
  return kOk;
}

int begin(int argc, char** argv) {
  CLI::App app{"popgated: the daemon of one Popgate node. Runs in the foreground and logs to standard error."};
  std::string run_file;
  std::string check_file;
  std::string nutcracker_file;
  auto* what = app.add_option_group("what to do");
  what->add_option("--config", run_file, "run with this configuration; SIGHUP reads it again, SIGTERM stops")
      ->type_name("FILE");
  what->add_option("--check-config", check_file, "read this configuration, print every fault, and exit")
      ->type_name("FILE");
  what->add_option("--print-nutcracker", nutcracker_file, "print twemproxy's configuration for this one, and exit")
      ->type_name("FILE");
  bool options = false;
  bool version = false;
  what->add_flag("--print-options", options, "print the table of all configuration options, and exit");
  what->add_flag("--version", version, "print the version, and exit");
  what->require_option(1);
  app.footer(
      "Exit status: 0 done or stopped by a signal; 1 could not start; 2 the configuration or command line is wrong.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kBadConfig;
  }

  if (version) return std::printf("popgated %s\n", popgate_version()) > 0 ? kOk : kFailed;
  if (options) return std::fputs(popgate::options_reference().c_str(), stdout) >= 0 ? kOk : kFailed;
  if (!check_file.empty()) return check(check_file);
  if (!nutcracker_file.empty()) return print_nutcracker(nutcracker_file);
  return run(run_file);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return begin(argc, argv);
  } catch (const std::exception& failure) {  // out of memory
    std::fprintf(stderr, "popgated: %s\n", failure.what());
    return kFailed;
  }
}
