// SPDX-License-Identifier: Apache-2.0
#include "daemon/operator_routes.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "daemon/admin_body.h"
#include "daemon/admin_server.h"
#include "daemon/operator_brakes.h"
#include "daemon/operator_orders.h"
#include "daemon/operator_views.h"
#include "daemon/prometheus.h"

namespace popgate {
namespace {

using nlohmann::json;

constexpr int kOk = 200;
constexpr int kBadRequest = 400;
constexpr int kNotReady = 503;

// Bytes of clients (a reason, a header's value) need not be UTF-8: what is not is replaced, never thrown over.
std::string text_of(const json& body) { return body.dump(-1, ' ', false, json::error_handler_t::replace); }

void answer(AdminReply& reply, const json& body) { reply.json(kOk, text_of(body)); }

void refuse(AdminReply& reply, int status, const std::string& text) { reply.json(status, text_of({{"error", text}})); }

void answer(AdminReply& reply, const Result<json>& result) {
  if (!result) return refuse(reply, kBadRequest, result.error());
  answer(reply, *result);
}

// The number in the query, or `standard`; empty when it is none or above `most`.
std::optional<std::size_t> number_of(const AdminRequest& request, std::string_view name, std::size_t standard,
                                     std::size_t most) {
  const std::optional<std::string> text = request.value(name);
  if (!text) return standard;
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value > most) return std::nullopt;
  return value;
}

struct Page {
  std::size_t limit;
  std::size_t offset;
};

Result<Page> page_of(const AdminRequest& request) {
  const auto limit = number_of(request, "limit", 1000, kShownMax);
  const auto offset = number_of(request, "offset", 0, SIZE_MAX);
  if (!limit || *limit == 0) {
    return Error{"limit: found \"" + request.value("limit").value_or("") + "\", allowed: 1 to " +
                 std::to_string(kShownMax)};
  }
  if (!offset) return Error{"offset: found \"" + request.value("offset").value_or("") + "\", allowed: a whole number"};
  return Page{*limit, *offset};
}

void show_mitigations(const OperatorViews& views, const AdminRequest& request, AdminReply& reply) {
  const Result<Page> page = page_of(request);
  if (!page) return refuse(reply, kBadRequest, page.error());
  answer(reply, views.mitigations({.rule = request.value("rule"),
                                   .key = request.value("key"),
                                   .by = request.value("by"),
                                   .kind = request.value("kind"),
                                   .limit = page->limit,
                                   .offset = page->offset}));
}

void show_rules(const OperatorViews& views, const AdminRequest& request, AdminReply& reply) {
  const Result<Page> page = page_of(request);
  if (!page) return refuse(reply, kBadRequest, page.error());
  answer(reply, views.rules({.rule = request.value("rule"), .limit = page->limit, .offset = page->offset}));
}

void explain(const OperatorViews& views, const AdminRequest& request, AdminReply& reply) {
  answer(reply, views.explain(
                    {.key = request.value("key"), .rule = request.value("rule"), .values = request.values("value")}));
}

void show_readiness(const OperatorViews& views, AdminReply& reply) {
  const std::vector<std::string> missing = views.not_ready();
  if (missing.empty()) return answer(reply, json{{"ready", true}});
  std::string text;
  for (const std::string& what : missing) text += (text.empty() ? "" : "; ") + what;
  refuse(reply, kNotReady, text);
}

// Hands the outcome of an order to its reply, now or later.
OperatorOrders::AnswerFunction replier(AdminReply reply) {
  return [reply = std::move(reply)](const json* said, const Refusal* refusal) mutable {
    if (said != nullptr) return answer(reply, *said);
    json body = {{"error", refusal->text}};
    if (!refusal->faults.empty()) body["faults"] = refusal->faults;
    reply.json(refusal->status, text_of(body));
  };
}

void order_brake(OperatorBrakes& brakes, const AdminRequest& request, AdminReply reply) {
  const Result<json> body = parse_admin_body(request.body);
  if (!body) return refuse(reply, kBadRequest, body.error());
  brakes.order(*body, replier(std::move(reply)));
}

using BodyOrder = void (OperatorOrders::*)(const json&, const OperatorOrders::AnswerFunction&);

AdminHandler with_body(OperatorOrders& orders, BodyOrder order) {
  return [&orders, order](const AdminRequest& request, AdminReply reply) {
    const Result<json> body = parse_admin_body(request.body);
    if (!body) return refuse(reply, kBadRequest, body.error());
    (orders.*order)(*body, replier(std::move(reply)));
  };
}

}  // namespace

void add_operator_routes(AdminServer& server, const OperatorViews& views, OperatorOrders& orders,
                         OperatorBrakes& brakes, std::function<void(const MetricVisitor&)> visit) {
  server.route("GET", "/enforce", [&](const AdminRequest&, AdminReply reply) { answer(reply, brakes.show()); });
  server.route("POST", "/enforce",
               [&](const AdminRequest& request, AdminReply reply) { order_brake(brakes, request, std::move(reply)); });
  server.route("GET", "/status", [&](const AdminRequest&, AdminReply reply) { answer(reply, views.status()); });
  server.route("GET", "/ready", [&](const AdminRequest&, AdminReply reply) { show_readiness(views, reply); });
  server.route("GET", "/peers", [&](const AdminRequest&, AdminReply reply) { answer(reply, views.peers()); });
  server.route("GET", "/rules",
               [&](const AdminRequest& request, AdminReply reply) { show_rules(views, request, reply); });
  server.route("GET", "/mitigations",
               [&](const AdminRequest& request, AdminReply reply) { show_mitigations(views, request, reply); });
  server.route("GET", "/explain",
               [&](const AdminRequest& request, AdminReply reply) { explain(views, request, reply); });
  server.route("GET", "/metrics", [visit = std::move(visit)](const AdminRequest&, AdminReply reply) {
    PrometheusText text;
    visit(text.visitor());
    reply.plain(kOk, text.text());
  });
  server.route("POST", "/block", with_body(orders, &OperatorOrders::block));
  server.route("POST", "/lift", with_body(orders, &OperatorOrders::lift));
  server.route("POST", "/reload",
               [&](const AdminRequest&, AdminReply reply) { orders.reload(replier(std::move(reply))); });
  server.route("POST", "/ring-check",
               [&](const AdminRequest&, AdminReply reply) { orders.ring_check(replier(std::move(reply))); });
}

}  // namespace popgate
