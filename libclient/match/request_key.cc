// SPDX-License-Identifier: Apache-2.0
#include "libclient/match/request_key.h"

#include "libclient/match/client_address.h"

namespace popgate {
namespace {

void add_value(KeyBuilder& builder, KeyPart type, std::string_view name, const HeaderValue& value) noexcept {
  if (value.present)
    builder.add(type, name, value.value);
  else
    builder.add_missing(type, name);
}

/// Host, path and method: an empty one is a request without it.
void add_text(KeyBuilder& builder, KeyPart type, std::string_view text) noexcept {
  add_value(builder, type, {}, {text, !text.empty()});
}

void add_part(KeyBuilder& builder, const KeyPartRecord& part, std::string_view name,
              const NormalRequest& request) noexcept {
  switch (part.type) {
    case KeyPart::kClientIp:
      return add_client(builder, {part.v4_prefix, part.v6_prefix}, request.client());
    case KeyPart::kHeader:
      return add_value(builder, part.type, name, request.header(name));
    case KeyPart::kCookie:
      return add_value(builder, part.type, name, request.cookie(name));
    case KeyPart::kHost:
      return add_text(builder, part.type, request.host());
    case KeyPart::kPath:
      return add_text(builder, part.type, request.path());
    case KeyPart::kMethod:
      return add_text(builder, part.type, request.method());
    case KeyPart::kCustom:
      return;  // never in a rule: open_block() refuses it
  }
}

}  // namespace

void add_client(KeyBuilder& builder, AddressPrefixes prefixes, const ClientAddress& client) noexcept {
  ClientAddress address = plain_address(client);
  if (address.bytes == 0) return builder.add_missing(KeyPart::kClientIp, {});
  clear_after_prefix(address, address.bytes == 4 ? prefixes.v4 : prefixes.v6);
  builder.add(KeyPart::kClientIp, {}, {reinterpret_cast<const char*>(address.octets), address.bytes});
}

Key request_key(const KeyedRequest& keyed, const HashSecret& secret) noexcept {
  const RuleRecord& rule = keyed.rule;
  KeyBuilder builder(secret, rule.counter_identity);
  for (const KeyPartRecord& part : keyed.block.key_parts.subspan(rule.key_parts_first, rule.key_parts_count)) {
    add_part(builder, part, keyed.block.text_of(part.name), keyed.request);
  }
  return builder.finish();
}

}  // namespace popgate
