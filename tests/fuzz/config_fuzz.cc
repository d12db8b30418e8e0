// SPDX-License-Identifier: Apache-2.0
//
// Any text is a configuration or a list of faults; what is accepted compiles into a block that workers accept.
#include <cstdint>
#include <cstdlib>

#include "daemon/config.h"
#include "libclient/match/rules_view.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string text(reinterpret_cast<const char*>(data), bytes);
  const popgate::ConfigOutcome outcome = popgate::parse_config(text, "fuzz");
  if (outcome.config.has_value() != outcome.faults.empty()) std::abort();
  for (const popgate::ConfigFault& fault : outcome.faults) {
    if (fault.found.empty() || fault.text().empty()) std::abort();
  }
  if (!outcome.config) return 0;
  const auto block = popgate::compile_rules(outcome.config->rules, {}, outcome.config->trusted_proxies);
  popgate::RulesView view;
  const char* reason = nullptr;
  if (!view.open(block, reason)) std::abort();
  return 0;
}
