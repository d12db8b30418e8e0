// SPDX-License-Identifier: Apache-2.0
//
// A file of brakes may hold anything by the time it is read: it is refused or read, and what is read can be written and
// read again. The checksum of every second input is made right, so that what lies behind it is reached.
#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "daemon/publish/brake_file.h"

namespace popgate {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void read(const std::string& bytes, NodeId node) {
  const auto stored = decode_brakes(bytes, node);
  if (!stored) return;
  Brakes brakes("node", [](const Brakes::Change&) {});
  for (const auto& [side, brake, untold] : stored->registers) brakes.restore(side, brake, untold);
  const auto again = decode_brakes(encode_brakes(brakes, node), node);
  require(again.ok());
  require(again->registers.size() <= stored->registers.size());
  Brakes same("node", [](const Brakes::Change&) {});
  for (const auto& [side, brake, untold] : again->registers) same.restore(side, brake, untold);
  require(same.digest() == brakes.digest());
}

}  // namespace
}  // namespace popgate

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  popgate::read(bytes, 1);
  if (size < 32) return 0;
  bytes.replace(0, 8, "PPGBRAK1");
  bytes.replace(8, 4, std::string("\1\0\0\0", 4));
  bytes.replace(16, 8, std::string("\1\0\0\0\0\0\0\0", 8));
  const std::size_t body = bytes.size() - 4;
  const auto sum = static_cast<std::uint32_t>(
      crc32(crc32(0, nullptr, 0), reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(body)));
  for (std::size_t i = 0; i < 4; ++i) bytes[body + i] = static_cast<char>(sum >> 8 * i & 0xff);
  popgate::read(bytes, 1);
  return 0;
}
