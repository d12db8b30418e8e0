// SPDX-License-Identifier: Apache-2.0
//
// Whatever a client sends as target, host, cookie, address or path for a glob: nothing is read outside it, and a path
// comes out in its one form.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "libclient/match/client_address.h"
#include "libclient/match/cookie.h"
#include "libclient/match/glob.h"
#include "libclient/match/normal_request.h"

namespace popgate {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void check_path(std::string_view path) {
  require(path.starts_with('/') && path.find_first_of("?#") == std::string_view::npos);
  if (path.size() == kPathBytesMax) return;  // it may be cut within a segment
  require(path.find("//") == std::string_view::npos);
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::string_view segment = path.substr(0, path.find('/'));
    require(segment != "." && segment != "..");
    path.remove_prefix(segment.size());
  }
}

/// The input up to the next line's end.
std::string_view take_line(std::string_view& input) {
  const std::string_view line = input.substr(0, input.find('\n'));
  input.remove_prefix(line.size() == input.size() ? line.size() : line.size() + 1);
  return line;
}

void check(std::string_view input) {
  Request request;
  request.path = take_line(input);
  request.host = take_line(input);
  request.method = take_line(input);
  const NormalRequest normal(request);
  if (request.path.starts_with('/')) check_path(normal.path());
  require(normal.host().size() <= kHostBytesMax);

  const std::string_view name = take_line(input);
  std::string_view value;
  if (find_cookie(input, name, value)) require(value.size() <= input.size());

  ClientAddress address;
  if (parse_address(name, address)) require(address.bytes == 4 || address.bytes == 16);
  GlobShape shape;
  if (read_glob(name, shape)) (void)glob_matches(name, shape, normal.path());
}

}  // namespace
}  // namespace popgate

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  popgate::check({reinterpret_cast<const char*>(data), bytes});
  return 0;
}
