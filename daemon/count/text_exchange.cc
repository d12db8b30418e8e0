// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/text_exchange.h"

#include "daemon/result.h"

namespace popgate {

TextExchange::TextExchange(Setup setup, ReplyFunction reply, EndFunction ended)
    : setup_(std::move(setup)), reply_(std::move(reply)), ended_(std::move(ended)), timer_(*setup_.reactor, [this] {
        if (stream_ == nullptr) return start();
        end("no reply within " + std::to_string(setup_.timeout.count()) + " ms");
      }) {
  timer_.start_once(microseconds(0));
}

void TextExchange::start() {
  if (setup_.address.bytes() == 0) return end("its address could not be looked up at start");
  timer_.start_once(setup_.timeout);
  stream_ = setup_.transport->dial(setup_.address, {});
  POPGATE_ASSERT(stream_ != nullptr);
  stream_->start(*this);
  stream_->write(setup_.commands);
}

void TextExchange::stream_readable() {
  bool good = true;
  while (good && setup_.replies > 0) {
    const std::string_view piece = stream_->peek();
    if (piece.empty()) break;
    const std::size_t bytes = piece.size();
    good = parser_.feed(piece, [this](const MemcachedReply& reply) {
      reply_(reply);
      if (reply.kind != MemcachedReply::Kind::kValue && reply.kind != MemcachedReply::Kind::kStat) --setup_.replies;
      return setup_.replies > 0;
    });
    stream_->consume(bytes);
  }
  if (setup_.replies == 0) return end({});
  if (!good) end(parser_.fault());
}

void TextExchange::end(const std::string& fault) {
  if (over_) return;
  over_ = true;
  timer_.stop();
  stream_.reset();
  ended_(fault);
}

}  // namespace popgate
