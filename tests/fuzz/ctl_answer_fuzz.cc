// SPDX-License-Identifier: Apache-2.0
//
// What popgatectl reads: the head of a reply, and JSON that may be anything. A head that is taken keeps its bounds; a
// view never sends a control character to the terminal, only line ends.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "daemon/ctl_explain.h"
#include "daemon/ctl_fields.h"
#include "daemon/ctl_reply.h"
#include "daemon/ctl_views.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string_view text(reinterpret_cast<const char*>(data), bytes);
  if (const auto head = popgate::parse_reply_head(text); head.ok()) {
    require(head->status >= 100 && head->status <= 599);
    require(head->body_bytes <= popgate::kCtlBodyBytesMax);
  }
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  const popgate::ViewContext context{popgate::PopInstant(std::chrono::seconds(1'000'000'000)), "popgatectl", 0};
  for (const auto view : {popgate::status_view, popgate::peers_view, popgate::rules_view, popgate::mitigations_view,
                          popgate::explain_view, popgate::block_view, popgate::lift_view, popgate::reload_view,
                          popgate::ring_check_view}) {
    for (const char c : view(popgate::Fields(json), context)) {
      require((static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) || c == '\n');
    }
  }
  return 0;
}
