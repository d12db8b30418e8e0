// SPDX-License-Identifier: Apache-2.0
#include "daemon/admin_reply.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/result.h"

namespace popgate {
namespace {

constexpr const char* kJson = "application/json";
constexpr const char* kPlain = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace

struct AdminReply::Pending {
  explicit Pending(Sink to) : sink(std::move(to)) {}
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  ~Pending() {
    if (sink) sink({500, kJson, error_json("the daemon dropped this request without an answer; see its log"), ""});
  }

  Sink sink;  // empty once it was called
};

AdminReply::AdminReply(Sink sink) : pending_(std::make_shared<Pending>(std::move(sink))) {}

void AdminReply::json(int status, std::string text) { answer({status, kJson, std::move(text), ""}); }

void AdminReply::plain(int status, std::string text) { answer({status, kPlain, std::move(text), ""}); }

void AdminReply::error(int status, const std::string& sentence, std::string allow) {
  answer({status, kJson, error_json(sentence), std::move(allow)});
}

void AdminReply::answer(AdminAnswer answer) {
  POPGATE_ASSERT(pending_ != nullptr && pending_->sink);
  const Sink sink = std::exchange(pending_->sink, nullptr);
  sink(std::move(answer));
}

std::string error_json(const std::string& sentence) {
  const nlohmann::json error{{"error", sentence}};
  return error.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace popgate
