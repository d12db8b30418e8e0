// SPDX-License-Identifier: Apache-2.0
//
// The C ABI of popgate.h: checks what comes in, turns it into the library's own types, and calls the client. Nothing is
// decided here.
#include "libclient/include/popgate/popgate.h"

#include <cerrno>
#include <cstring>
#include <new>
#include <span>
#include <string_view>

#include "libclient/client.h"
#include "libclient/match/client_address.h"

struct popgate_client {
  popgate::Client client;
};

namespace popgate {
namespace {

// Null with a count of 0 is the empty string; null with another count is an error.
bool text_is_valid(const char* text, size_t bytes) noexcept { return text != nullptr || bytes == 0; }
std::string_view text_of(const char* text, size_t bytes) noexcept {
  return bytes == 0 ? std::string_view() : std::string_view(text, bytes);
}

// Only this release's sizes exist yet.
bool is_valid(const popgate_request* request) noexcept {
  return request != nullptr && request->struct_bytes == sizeof *request &&
         text_is_valid(request->method, request->method_bytes) && text_is_valid(request->host, request->host_bytes) &&
         text_is_valid(request->path, request->path_bytes) &&
         (request->client.bytes == 0 || request->client.bytes == 4 || request->client.bytes == 16);
}

// Also clears it, so that a verdict that was used before says nothing old.
bool prepare(popgate_verdict* verdict) noexcept {
  if (verdict == nullptr) return true;
  if (verdict->struct_bytes != sizeof *verdict) return false;
  *verdict = POPGATE_VERDICT_INIT;
  return true;
}

bool find_header(void* context, std::string_view name, std::string_view& value) {
  const auto& request = *static_cast<const popgate_request*>(context);
  const char* text = nullptr;
  size_t bytes = 0;
  if (request.header(request.header_context, name.data(), name.size(), &text, &bytes) != 1) return false;
  if (!text_is_valid(text, bytes)) return false;
  value = text_of(text, bytes);
  return true;
}

Request request_of(const popgate_request& from) noexcept {
  Request request;
  request.method = text_of(from.method, from.method_bytes);
  request.host = text_of(from.host, from.host_bytes);
  request.path = text_of(from.path, from.path_bytes);
  std::memcpy(request.client.octets, from.client.octets, sizeof request.client.octets);
  request.client.bytes = from.client.bytes;
  if (from.header != nullptr) {
    request.header = find_header;
    request.header_context = const_cast<popgate_request*>(&from);  // find_header only reads it
  }
  return request;
}

void write_address(const ClientAddress& from, popgate_address& to) noexcept {
  to = {};
  std::memcpy(to.octets, from.octets, from.bytes);
  to.bytes = from.bytes;
}

bool options_of(const popgate_options* from, Client::Options& to) noexcept {
  if (from == nullptr) return true;
  if (from->struct_bytes != sizeof *from) return false;
  if (from->ring_slots != 0) to.ring_slots = from->ring_slots;
  to.tick_thread = from->tick_thread != 0;
  if (from->worker_name != nullptr) to.worker_name = from->worker_name;
  return true;
}

}  // namespace
}  // namespace popgate

extern "C" {

popgate_result popgate_open(const char* socket_path, const popgate_options* options, popgate_client** client) {
  if (client == nullptr) return POPGATE_INVALID;
  *client = nullptr;
  popgate::Client::Options wanted;
  if (socket_path == nullptr || !popgate::options_of(options, wanted)) return POPGATE_INVALID;
  wanted.socket_path = socket_path;
  auto* const fresh = new (std::nothrow) popgate_client;
  if (fresh == nullptr) return POPGATE_NO_MEMORY;
  const popgate_result result = fresh->client.open(wanted);
  if (result != POPGATE_OK) {
    const int error = errno;  // for the caller; giving back what was opened may change it
    delete fresh;
    errno = error;
    return result;
  }
  *client = fresh;
  return POPGATE_OK;
}

void popgate_close(popgate_client* client) {
  if (client == nullptr) return;
  client->client.close();
  // What a fork caught in the tick thread's hands is left alone, the memory with it.
  if (client->client.in_forked_child() && client->client.has_tick_thread()) return;
  delete client;
}

popgate_result popgate_tick(popgate_client* client) {
  if (client == nullptr) return POPGATE_INVALID;
  if (!client->client.has_tick_thread()) client->client.tick();
  return POPGATE_OK;
}

int popgate_file_descriptor(const popgate_client* client) {
  return client == nullptr ? -1 : client->client.descriptor();
}

popgate_result popgate_check(popgate_client* client, const popgate_request* request, popgate_verdict* verdict) {
  if (client == nullptr) return POPGATE_PASS;
  if (!popgate::is_valid(request) || !popgate::prepare(verdict)) return client->client.refuse_check();
  return client->client.check(popgate::request_of(*request), verdict);
}

popgate_result popgate_check_key(popgate_client* client, const char* rule, size_t rule_bytes, const void* key,
                                 size_t key_bytes, popgate_verdict* verdict) {
  if (client == nullptr) return POPGATE_PASS;
  if (!popgate::text_is_valid(rule, rule_bytes) || (key == nullptr && key_bytes != 0) || !popgate::prepare(verdict)) {
    return client->client.refuse_check();
  }
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(key), key_bytes);
  return client->client.check_key(popgate::text_of(rule, rule_bytes), bytes, verdict);
}

popgate_result popgate_peek(popgate_client* client, const popgate_request* request, popgate_verdict* verdict) {
  if (client == nullptr || !popgate::is_valid(request) || !popgate::prepare(verdict)) return POPGATE_PASS;
  return client->client.peek(popgate::request_of(*request), verdict);
}

popgate_result popgate_response(popgate_client* client, const popgate_request* request, int status) {
  const bool valid = client != nullptr && popgate::is_valid(request) && status >= 100 && status <= 999;
  return valid ? POPGATE_OK : POPGATE_INVALID;
}

popgate_result popgate_parse_address(const char* text, size_t text_bytes, popgate_address* address) {
  if (address == nullptr) return POPGATE_INVALID;
  *address = {};
  popgate::ClientAddress read;
  if (!popgate::text_is_valid(text, text_bytes) || !popgate::parse_address(popgate::text_of(text, text_bytes), read)) {
    return POPGATE_INVALID;
  }
  popgate::write_address(read, *address);
  return POPGATE_OK;
}

// Const for the caller: only the handshake with the tick thread is written.
popgate_result popgate_client_address(const popgate_client* client, const char* peer, size_t peer_bytes,
                                      const char* forwarded_for, size_t forwarded_for_bytes, popgate_address* address) {
  if (address == nullptr) return POPGATE_INVALID;
  *address = {};
  if (client == nullptr || !popgate::text_is_valid(peer, peer_bytes) ||
      !popgate::text_is_valid(forwarded_for, forwarded_for_bytes)) {
    return POPGATE_INVALID;
  }
  popgate::ClientAddress found;
  if (!const_cast<popgate_client*>(client)->client.client_address(
          popgate::text_of(peer, peer_bytes), popgate::text_of(forwarded_for, forwarded_for_bytes), found)) {
    return POPGATE_INVALID;
  }
  popgate::write_address(found, *address);
  return POPGATE_OK;
}

popgate_result popgate_get_statistics(const popgate_client* client, popgate_statistics* statistics) {
  if (client == nullptr || statistics == nullptr || statistics->struct_bytes != sizeof *statistics) {
    return POPGATE_INVALID;
  }
  client->client.statistics(*statistics);
  return POPGATE_OK;
}

const char* popgate_version(void) { return "0.1.0"; }

}  // extern "C"
