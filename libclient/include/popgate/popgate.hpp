// SPDX-License-Identifier: Apache-2.0
//
// popgate.hpp - a thin C++ face on popgate.h: owns the client and takes string views. C++17 or later, header only.
//
//     popgate::Gate gate = popgate::Gate::open("/run/popgate/workers.sock");     // once per worker, after fork
//     if (!gate) ... errno, gate.error()
//
//     popgate::Gate::Request request;
//     request.method(method).host(host).path(path).client(gate.client_address(peer, forwarded_for));
//     popgate_verdict verdict = POPGATE_VERDICT_INIT;
//     if (gate.check(request, &verdict)) ...                                     // 429, Retry-After: retry_after_s
//
//     gate.tick();                                                               // every 100 ms or so
//
// Everything that popgate.h says holds here too: threads, lifetimes, cost. Nothing throws.
#ifndef POPGATE_POPGATE_HPP
#define POPGATE_POPGATE_HPP

#include <popgate/popgate.h>

#include <memory>
#include <string_view>
#include <type_traits>

namespace popgate {

class Gate {
 public:
  /// Views into the caller's memory: they must live until the check returns.
  class Request {
   public:
    Request& method(std::string_view value) noexcept {
      raw_.method = value.data();
      raw_.method_bytes = value.size();
      return *this;
    }
    Request& host(std::string_view value) noexcept {
      raw_.host = value.data();
      raw_.host_bytes = value.size();
      return *this;
    }
    Request& path(std::string_view value) noexcept {
      raw_.path = value.data();
      raw_.path_bytes = value.size();
      return *this;
    }
    Request& client(const popgate_address& address) noexcept {
      raw_.client = address;
      return *this;
    }
    /// `find(name, value)` returns whether the request has the header and sets `value`. It must outlive the check and
    /// not throw.
    template <typename Find>
    Request& headers(Find& find) noexcept {
      static_assert(std::is_invocable_r_v<bool, Find&, std::string_view, std::string_view&>);
      raw_.header = [](void* context, const char* name, size_t name_bytes, const char** value,
                       size_t* value_bytes) -> int {
        std::string_view found;
        if (!(*static_cast<Find*>(context))(std::string_view(name, name_bytes), found)) return 0;
        *value = found.data();
        *value_bytes = found.size();
        return 1;
      };
      raw_.header_context = const_cast<std::remove_const_t<Find>*>(&find);
      return *this;
    }
    [[nodiscard]] const popgate_request* get() const noexcept { return &raw_; }

   private:
    popgate_request raw_ = POPGATE_REQUEST_INIT;
  };

  /// Empty.
  Gate() = default;
  /// Empty when popgate_open failed: error() then says how.
  [[nodiscard]] static Gate open(const char* socket_path, const popgate_options* options = nullptr) noexcept {
    popgate_client* client = nullptr;
    Gate gate;
    gate.error_ = popgate_open(socket_path, options, &client);
    gate.client_.reset(client);
    return gate;
  }

  [[nodiscard]] explicit operator bool() const noexcept { return client_ != nullptr; }
  [[nodiscard]] popgate_result error() const noexcept { return error_; }
  /// For the calls of popgate.h that have no counterpart here.
  [[nodiscard]] popgate_client* get() const noexcept { return client_.get(); }

  void tick() noexcept { (void)popgate_tick(client_.get()); }
  [[nodiscard]] int file_descriptor() const noexcept { return popgate_file_descriptor(client_.get()); }

  /// True: block.
  [[nodiscard]] bool check(const Request& request, popgate_verdict* verdict = nullptr) noexcept {
    return popgate_check(client_.get(), request.get(), verdict) == POPGATE_BLOCK;
  }
  [[nodiscard]] bool check_key(std::string_view rule, std::string_view key,
                               popgate_verdict* verdict = nullptr) noexcept {
    return popgate_check_key(client_.get(), rule.data(), rule.size(), key.data(), key.size(), verdict) == POPGATE_BLOCK;
  }
  [[nodiscard]] bool peek(const Request& request, popgate_verdict* verdict = nullptr) noexcept {
    return popgate_peek(client_.get(), request.get(), verdict) == POPGATE_BLOCK;
  }

  /// Unknown (bytes == 0) when `peer` is not an address.
  [[nodiscard]] popgate_address client_address(std::string_view peer,
                                               std::string_view forwarded_for = {}) const noexcept {
    popgate_address address = {{0}, 0};
    (void)popgate_client_address(client_.get(), peer.data(), peer.size(), forwarded_for.data(), forwarded_for.size(),
                                 &address);
    return address;
  }
  /// All zero when the gate is empty.
  [[nodiscard]] popgate_statistics statistics() const noexcept {
    popgate_statistics figures = POPGATE_STATISTICS_INIT;
    (void)popgate_get_statistics(client_.get(), &figures);
    return figures;
  }

 private:
  struct Close {
    void operator()(popgate_client* client) const noexcept { popgate_close(client); }
  };
  std::unique_ptr<popgate_client, Close> client_;
  popgate_result error_ = POPGATE_OK;
};

}  // namespace popgate

#endif  // POPGATE_POPGATE_HPP
