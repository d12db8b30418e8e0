// SPDX-License-Identifier: Apache-2.0
//
// Accepts connections on one address, and survives having no descriptor left for one.
//
// Threads: the event loop's.
// Limits: kListenBacklog connections that the kernel holds; kMeshAcceptPause without accepting after a failure, because
//         the connection that could not be accepted keeps the socket readable and the loop would spin.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "daemon/event_loop.h"
#include "daemon/result.h"
#include "daemon/socket_address.h"
#include "libclient/instant.h"

struct evconnlistener;

namespace popgate {

inline constexpr int kListenBacklog = 64;
inline constexpr milliseconds kMeshAcceptPause{100};

class MeshListener {
 public:
  using OnAccept = std::function<void(int descriptor, const SocketAddress& remote)>;

  [[nodiscard]] static Result<std::unique_ptr<MeshListener>> open(event_base* base, const SocketAddress& address,
                                                                  OnAccept on_accept);
  ~MeshListener();
  MeshListener(const MeshListener&) = delete;
  MeshListener& operator=(const MeshListener&) = delete;

  [[nodiscard]] const SocketAddress& address() const { return address_; }
  [[nodiscard]] std::uint64_t failures() const { return failures_; }

 private:
  MeshListener(event_base* base, OnAccept on_accept);
  void pause();

  OnAccept on_accept_;
  Timer resume_;
  evconnlistener* listener_ = nullptr;
  SocketAddress address_;
  std::uint64_t failures_ = 0;
};

}  // namespace popgate
