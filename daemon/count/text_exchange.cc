// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/text_exchange.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include <cstring>

#include "daemon/result.h"

namespace popgate {

TextExchange::TextExchange(Setup setup, ReplyFunction reply, EndFunction ended)
    : setup_(std::move(setup)), reply_(std::move(reply)), ended_(std::move(ended)), timer_(setup_.base, [this] {
        if (event_ == nullptr) return start();
        end("no reply within " + std::to_string(setup_.timeout.count()) + " ms");
      }) {
  timer_.start_once(microseconds(0));
}

TextExchange::~TextExchange() {
  if (event_ != nullptr) bufferevent_free(event_);
}

void TextExchange::start() {
  timer_.start_once(setup_.timeout);
  event_ = bufferevent_socket_new(setup_.base, -1, BEV_OPT_CLOSE_ON_FREE);
  POPGATE_ASSERT(event_ != nullptr);
  bufferevent_setcb(event_, on_readable, nullptr, on_event, this);
  bufferevent_enable(event_, EV_READ | EV_WRITE);
  evbuffer_add(bufferevent_get_output(event_), setup_.commands.data(), setup_.commands.size());
  if (setup_.address.bytes() == 0) return end("its address could not be looked up at start");
  const int begun = bufferevent_socket_connect(event_, setup_.address.get(), static_cast<int>(setup_.address.bytes()));
  if (begun != 0) end("cannot connect");
}

void TextExchange::on_event(bufferevent* /*event*/, short what, void* self) {
  auto& exchange = *static_cast<TextExchange*>(self);
  if ((what & BEV_EVENT_ERROR) != 0) return exchange.end(evutil_socket_error_to_string(EVUTIL_SOCKET_ERROR()));
  if ((what & BEV_EVENT_EOF) != 0) exchange.end("closed by the other side");
}

void TextExchange::on_readable(bufferevent* /*event*/, void* self) { static_cast<TextExchange*>(self)->read_replies(); }

void TextExchange::read_replies() {
  evbuffer* const input = bufferevent_get_input(event_);
  bool good = true;
  evbuffer_iovec piece{};
  while (good && setup_.replies > 0 && evbuffer_peek(input, -1, nullptr, &piece, 1) > 0) {
    good = parser_.feed({static_cast<const char*>(piece.iov_base), piece.iov_len}, [this](const MemcachedReply& reply) {
      reply_(reply);
      if (reply.kind != MemcachedReply::Kind::kValue && reply.kind != MemcachedReply::Kind::kStat) --setup_.replies;
      return setup_.replies > 0;
    });
    evbuffer_drain(input, piece.iov_len);
  }
  if (setup_.replies == 0) return end({});
  if (!good) end(parser_.fault());
}

void TextExchange::end(const std::string& fault) {
  if (over_) return;
  over_ = true;
  timer_.stop();
  bufferevent_disable(event_, EV_READ | EV_WRITE);
  ended_(fault);
}

}  // namespace popgate
