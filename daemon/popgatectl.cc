// SPDX-License-Identifier: Apache-2.0
//
// popgatectl: looks into a running popgated and gives it orders. docs/admin-api.md is what it speaks.
#include <poll.h>

#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>

#include "daemon/ctl_command.h"
#include "daemon/ctl_enforce.h"
#include "daemon/ctl_explain.h"
#include "daemon/ctl_fields.h"
#include "daemon/ctl_secret.h"
#include "daemon/ctl_views.h"

namespace popgate {
namespace {

constexpr std::chrono::milliseconds kReadyAskedEvery{100};

using View = std::string (*)(const Fields&, const ViewContext&);
constexpr std::pair<std::string_view, View> kViews[] = {
    {"status", status_view},
    {"peers", peers_view},
    {"rules", rules_view},
    {"mitigations", mitigations_view},
    {"explain", explain_view},
    {"block", block_view},
    {"lift", lift_view},
    {"reload", reload_view},
    {"ring-check", ring_check_view},
    {"enforce", enforce_view},
};

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (!text.ends_with('\n')) std::fputc('\n', stdout);
}

void complain(const std::string& text) { std::fprintf(stderr, "popgatectl: %s\n", text.c_str()); }

// The daemon's own sentence, and a configuration's faults below it.
void complain_of_refusal(const CtlReply& reply, const nlohmann::json& json) {
  const Fields refusal(json);
  complain(refusal.has("error") ? refusal.text("error")
                                : "the daemon refused it with HTTP status " + std::to_string(reply.status));
  for (const std::string& fault : refusal.texts("faults")) std::fprintf(stderr, "  %s\n", fault.c_str());
}

int exit_of(const CtlCommand& command, const Fields& answer) {
  return command.name == "ring-check" && !ring_agrees(answer) ? kCtlRefused : kCtlDone;
}

int show_json(const CtlCommand& command, const CtlReply& reply) {
  const nlohmann::json json = nlohmann::json::parse(reply.body, nullptr, false);
  if (!json.is_object()) {
    complain("the daemon's answer is not the JSON that this popgatectl knows; is it of another version?");
    return kCtlUnreachable;
  }
  const Fields answer(json);
  const ViewContext context{PopClock::now(), command.called, command.offset};
  for (const auto& [name, view] : kViews) {
    if (name == command.name) print(view(answer, context));
  }
  if (command.name == "ready") print("ready");
  return exit_of(command, answer);
}

int show(const CtlCommand& command, const CtlReply& reply) {
  if (command.json && !command.quiet) print(reply.body);
  const bool refused = reply.status < 200 || reply.status > 299;
  if (refused) {
    const nlohmann::json json = nlohmann::json::parse(reply.body, nullptr, false);
    if (!command.quiet) complain_of_refusal(reply, json);
    return kCtlRefused;
  }
  if (command.json || command.quiet) {
    const nlohmann::json json = nlohmann::json::parse(reply.body, nullptr, false);
    return exit_of(command, Fields(json));
  }
  if (command.name == "metrics") {
    print(reply.body);
    return kCtlDone;
  }
  return show_json(command, reply);
}

// Once; `ready` again and again until it is, or until its time is up.
Result<CtlReply> ask(const CtlCommand& command) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + command.wait;
  for (;;) {
    Result<CtlReply> reply = ask_daemon(command.socket_path, command.request, command.timeout);
    const bool ready = reply.ok() && reply->status == 200;
    if (ready || Clock::now() >= end) return reply;
    poll(nullptr, 0, static_cast<int>(kReadyAskedEvery.count()));
  }
}

int show_secret(const CtlCommand& command) {
  const Result<std::string> said = secret_command(command);
  if (!said) {
    complain(said.error());
    return kCtlRefused;
  }
  print(*said);
  return std::fflush(stdout) == 0 ? kCtlDone : kCtlRefused;
}

int run(int argc, char** argv) {
  int exit_status = kCtlDone;
  const std::optional<CtlCommand> command = read_ctl_command(argc, argv, exit_status);
  if (!command) return exit_status;
  if (!command->secret_file.empty()) return show_secret(*command);
  const Result<CtlReply> reply = ask(*command);
  if (!reply) {
    if (!command->quiet) complain(reply.error());
    return kCtlUnreachable;
  }
  exit_status = show(*command, *reply);
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_status;
  complain("cannot write to standard output");
  return kCtlRefused;
}

}  // namespace
}  // namespace popgate

int main(int argc, char** argv) {
  try {
    return popgate::run(argc, argv);
  } catch (const std::exception& failure) {  // out of memory
    std::fprintf(stderr, "popgatectl: %s\n", failure.what());
    return popgate::kCtlUnreachable;
  }
}
