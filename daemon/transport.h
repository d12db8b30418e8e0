// SPDX-License-Identifier: Apache-2.0
//
// How to reach other processes and be reached.
//
// Threads: the loop's.
// Invariants: 1. A stream that was handed out is its owner's, and goes before its transport.
// Limits: a transport holds no queue; how many connections are open is for who dials and accepts to bound.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/result.h"
#include "daemon/socket_address.h"
#include "daemon/stream.h"

namespace popgate {

/// Accepts until it is destroyed.
class Listener {
 public:
  virtual ~Listener() = default;
  [[nodiscard]] virtual const SocketAddress& address() const = 0;
  /// Connections that could not be accepted.
  [[nodiscard]] virtual std::uint64_t failures() const = 0;
};

class Transport {
 public:
  using AcceptFunction = std::function<void(std::unique_ptr<Stream>, const SocketAddress& remote)>;

  virtual ~Transport() = default;
  /// `name`: whom to find there; matters where the transport proves names. Null when there is no descriptor left.
  [[nodiscard]] virtual std::unique_ptr<Stream> dial(const SocketAddress& address, const std::string& name) = 0;
  /// `accepted` takes each connection over, not started.
  [[nodiscard]] virtual Result<std::unique_ptr<Listener>> listen(const SocketAddress& address,
                                                                 AcceptFunction accepted) = 0;
  /// Whether streams have a proven_name(); who has none must not be reached from other hosts.
  [[nodiscard]] virtual bool proves_names() const { return false; }
  /// From when others no longer believe what this node proves its own name by; empty where nothing is proven.
  [[nodiscard]] virtual std::optional<PopInstant> own_proof_ends() const { return std::nullopt; }
};

}  // namespace popgate
