// SPDX-License-Identifier: Apache-2.0
#include "daemon/certificate_name.h"

#include <algorithm>
#include <ctime>
#include <vector>

#include "daemon/config_options.h"
#include "daemon/openssl_handle.h"
#include "daemon/printable_text.h"

namespace popgate {
namespace {

constexpr std::string_view kScheme = "popgate://";
constexpr std::size_t kShownBytesMax = 160;  // of a stranger's text in a message

std::string_view text_of(const ASN1_STRING* string) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(string)),
          static_cast<std::size_t>(ASN1_STRING_length(string))};
}

std::string shown(std::string_view text) { return '"' + printable_ascii(text, kShownBytesMax) + '"'; }

/// The URIs of our scheme among the certificate's names, whatever stands behind it.
std::vector<std::string> uris_of(const X509* certificate) {
  const openssl::Handle<GENERAL_NAMES> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  ERR_clear_error();
  std::vector<std::string> uris;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const std::string_view uri = text_of(name->d.uniformResourceIdentifier);
    if (uri.starts_with(kScheme)) uris.emplace_back(uri);
  }
  return uris;
}

std::string line_of(const X509_NAME* name) {
  const openssl::Handle<BIO> out(BIO_new(BIO_s_mem()));
  char* text = nullptr;
  if (out == nullptr || X509_NAME_print_ex(out.get(), name, 0, XN_FLAG_ONELINE & ~ASN1_STRFLGS_UTF8_CONVERT) < 0) {
    return shown("");
  }
  const long bytes = BIO_get_mem_data(out.get(), &text);
  return shown({text, static_cast<std::size_t>(std::max(bytes, 0L))});
}

PopInstant instant_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return PopInstant{};
  return PopInstant(std::chrono::seconds(timegm(&parts)));
}

}  // namespace

std::optional<CertificateName> parse_certificate_name(std::string_view uri) {
  if (!uri.starts_with(kScheme)) return std::nullopt;
  const std::string_view both = uri.substr(kScheme.size());
  const std::size_t slash = both.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view pop = both.substr(0, slash);
  const std::string_view node = both.substr(slash + 1);
  if (!is_plain_name(pop) || !is_plain_name(node)) return std::nullopt;
  return CertificateName{std::string(pop), std::string(node)};
}

Result<CertificateName> name_in(const x509_st* certificate) {
  const std::vector<std::string> uris = uris_of(certificate);
  const std::string allowed = ", allowed: one subject alternative name URI:popgate://POP/NODE";
  if (uris.empty())
    return Error{"found a certificate of " + line_of(X509_get_subject_name(certificate)) + " without such a name" +
                 allowed};
  if (uris.size() > 1) return Error{"found " + shown(uris[0]) + " and " + shown(uris[1]) + allowed};
  auto name = parse_certificate_name(uris[0]);
  if (!name) return Error{"found " + shown(uris[0]) + allowed};
  return *std::move(name);
}

std::string describe_certificate(const x509_st* certificate) {
  const std::vector<std::string> uris = uris_of(certificate);
  return (uris.empty() ? line_of(X509_get_subject_name(certificate)) : shown(uris[0])) + " (issuer " +
         line_of(X509_get_issuer_name(certificate)) + ")";
}

PopInstant valid_from(const x509_st* certificate) { return instant_of(X509_get0_notBefore(certificate)); }

PopInstant valid_until(const x509_st* certificate) { return instant_of(X509_get0_notAfter(certificate)); }

std::string certificate_time_text(PopInstant instant) {
  const std::time_t seconds = std::chrono::floor<std::chrono::seconds>(instant.time_since_epoch()).count();
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  (void)std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace popgate
