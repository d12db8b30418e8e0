// SPDX-License-Identifier: Apache-2.0
//
// Requests on the admin socket behind HTTP: the query's decoder and the router. Whatever comes, there is exactly one
// answer with a status of ours, and what was decoded means the same when it is encoded again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "daemon/admin_router.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

std::string encode(const popgate::AdminRequest& request) {
  std::string query;
  for (const auto& [name, value] : request.query) {
    query += popgate::percent_encode(name) + "=" + popgate::percent_encode(value) + "&";
  }
  return query;
}

std::string_view take_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  const std::string_view line = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return line;
}

}  // namespace

// Method, path and query are the first three lines; the rest is the body.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  std::string_view rest(reinterpret_cast<const char*>(data), bytes);
  const std::string_view method = take_line(rest);
  const std::string_view path = take_line(rest);
  const std::string_view query = take_line(rest);
  bool handled = false;
  popgate::AdminRouter router;
  const auto handler = [&](const popgate::AdminRequest& request, popgate::AdminReply reply) {
    handled = true;
    require(request.query.size() <= popgate::kAdminQueryPairsMax);
    require(request.body == rest);
    const auto again = popgate::decode_admin_request(encode(request), "");
    require(again.ok() && again->query == request.query);
    reply.json(200, "{}");
  };
  router.route("GET", "/explain", handler);
  router.route("POST", "/block", handler);
  int answers = 0;
  popgate::AdminReply reply([&](const popgate::AdminAnswer& answer) {
    ++answers;
    require(answer.status == 200 || answer.status == 400 || answer.status == 404 || answer.status == 405);
    require(handled == (answer.status == 200));
    require((answer.status == 405) == !answer.allow.empty());
  });
  router.dispatch({method, path, query, std::string(rest)}, std::move(reply));
  require(answers == 1);
  return 0;
}
