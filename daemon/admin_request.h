// SPDX-License-Identifier: Apache-2.0
//
// One request on the admin socket, decoded: the query's names and values, and the body as it came.
//
// Decoded by ourselves and strictly, because libevent's decoder lets `%zz` pass as text and ends a value at `%00`: a
// request that says something else than its sender meant must not block or lift anybody.
//
// Threads: values.
// Limits: kAdminQueryPairsMax pairs; the transport bounds the bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/result.h"

namespace popgate {

inline constexpr std::size_t kAdminQueryPairsMax = 64;

struct AdminRequest {
  std::vector<std::pair<std::string, std::string>> query;  // in the order of the request
  std::string body;

  /// The first value of a name.
  [[nodiscard]] std::optional<std::string> value(std::string_view name) const;
  /// All values of a name, in their order.
  [[nodiscard]] std::vector<std::string> values(std::string_view name) const;
};

/// `query` is what stands behind the `?`. A `+` is a plus. A name without `=` has an empty value.
[[nodiscard]] Result<AdminRequest> decode_admin_request(std::string_view query, std::string body);

/// Empty when a `%` is not followed by two hexadecimal digits.
[[nodiscard]] std::optional<std::string> percent_decode(std::string_view text);
/// Everything but letters, digits and `-._~` as `%XX`.
[[nodiscard]] std::string percent_encode(std::string_view text);

}  // namespace popgate
