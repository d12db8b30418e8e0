// SPDX-License-Identifier: Apache-2.0
//
// Owners of OpenSSL's objects, and what it has to say about a failure.
//
// Threads: a handle belongs to one thread; the counts of what OpenSSL itself shares are atomic.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>

namespace popgate::openssl {

struct Free {
  void operator()(BIO* object) const noexcept { BIO_free(object); }
  void operator()(EVP_PKEY* object) const noexcept { EVP_PKEY_free(object); }
  void operator()(X509* object) const noexcept { X509_free(object); }
  void operator()(X509_STORE* object) const noexcept { X509_STORE_free(object); }
  void operator()(X509_STORE_CTX* object) const noexcept { X509_STORE_CTX_free(object); }
  void operator()(STACK_OF(X509) * object) const noexcept { sk_X509_pop_free(object, X509_free); }
  void operator()(GENERAL_NAMES* object) const noexcept { GENERAL_NAMES_free(object); }
  void operator()(SSL_CTX* object) const noexcept { SSL_CTX_free(object); }
  void operator()(SSL* object) const noexcept { SSL_free(object); }
};

template <typename Object>
using Handle = std::unique_ptr<Object, Free>;

/// A BIO that reads these bytes, which must outlive it.
inline Handle<BIO> reader_of(std::string_view bytes) {
  return Handle<BIO>(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
}

/// The oldest error that waits on this thread, in OpenSSL's words; all of them are taken away, because the next call
/// that looks at them would believe them its own.
inline std::string take_error() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "an error without a reason" : reason;
}

}  // namespace popgate::openssl
