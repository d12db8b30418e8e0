// SPDX-License-Identifier: Apache-2.0
//
// The same in C++, through the thin face. Exits with the number of the first line that is not so.
#include <popgate/popgate.hpp>
#include <string_view>
#include <utility>

#include "layout.h"

#define EXPECT(condition) \
  if (!(condition)) return __LINE__

int main() {
  EXPECT(!popgate::Gate());
  EXPECT(popgate::Gate::open("").error() == POPGATE_INVALID);
  popgate_options options = POPGATE_OPTIONS_INIT;
  options.ring_slots = 1024;
  options.tick_thread = 1;
  popgate::Gate first = popgate::Gate::open("/nonexistent/workers.sock", &options);
  EXPECT(first);
  popgate::Gate gate = std::move(first);
  EXPECT(gate && !first);

  const auto find = [](std::string_view name, std::string_view& value) {
    value = "someone";
    return name == "x-user";
  };
  popgate::Gate::Request request;
  request.method("GET").host("example.com").path("/").client(gate.client_address("192.0.2.1")).headers(find);
  const char* value = nullptr;
  std::size_t value_bytes = 0;
  EXPECT(request.get()->header(request.get()->header_context, "x-user", 6, &value, &value_bytes) == 1);
  EXPECT(std::string_view(value, value_bytes) == "someone");
  EXPECT(request.get()->header(request.get()->header_context, "x-other", 7, &value, &value_bytes) == 0);

  popgate_verdict verdict = POPGATE_VERDICT_INIT;
  EXPECT(!gate.check(request, &verdict));
  EXPECT(!gate.check_key("rule", "key"));
  EXPECT(!gate.peek(request));
  gate.tick();
  EXPECT(gate.file_descriptor() == -1);
  EXPECT(gate.statistics().checks_detached == 2);
  return 0;
}
