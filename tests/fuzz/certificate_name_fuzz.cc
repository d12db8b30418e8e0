// SPDX-License-Identifier: Apache-2.0
//
// A peer's certificate, in DER: whatever its names are, they are read, refused or shown without harm, and a name that
// is accepted is one that this project writes.
#include <openssl/x509.h>

#include <cstddef>
#include <cstdint>

#include "daemon/certificate_name.h"
#include "daemon/openssl_handle.h"
#include "daemon/result.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace popgate;
  (void)parse_certificate_name({reinterpret_cast<const char*>(data), bytes});
  const unsigned char* at = data;
  const openssl::Handle<X509> certificate(d2i_X509(nullptr, &at, static_cast<long>(bytes)));
  ERR_clear_error();
  if (certificate == nullptr) return 0;
  if (const auto name = name_in(certificate.get())) POPGATE_ASSERT(parse_certificate_name(name->text()) == *name);
  for (const char shown : describe_certificate(certificate.get())) POPGATE_ASSERT(shown >= 0x20 && shown <= 0x7e);
  (void)certificate_time_text(valid_from(certificate.get()));
  (void)certificate_time_text(valid_until(certificate.get()));
  return 0;
}
