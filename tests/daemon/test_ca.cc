// SPDX-License-Identifier: Apache-2.0
#include "tests/daemon/test_ca.h"

#include <openssl/pem.h>
#include <sys/stat.h>

#include <fstream>
#include <stdexcept>

namespace popgate {
namespace {

using openssl::Handle;

Handle<EVP_PKEY> new_key(const std::string& kind) {
  const bool is_rsa = kind.starts_with("RSA");
  Handle<EVP_PKEY> key(is_rsa ? EVP_RSA_gen(static_cast<unsigned>(std::stoul(kind.substr(3))))
                              : EVP_EC_gen(kind.c_str()));
  if (key == nullptr) throw std::runtime_error("no key of the kind " + kind);
  return key;
}

std::string text_of(BIO* out) {
  char* text = nullptr;
  const long bytes = BIO_get_mem_data(out, &text);
  return {text, static_cast<std::size_t>(bytes)};
}

std::string pem_of(X509* certificate) {
  const Handle<BIO> out(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(out.get(), certificate);
  return text_of(out.get());
}

std::string pem_of(EVP_PKEY* key) {
  const Handle<BIO> out(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return text_of(out.get());
}

void set_time(ASN1_TIME* time, PopInstant instant) {
  ASN1_TIME_set(time, std::chrono::floor<std::chrono::seconds>(instant.time_since_epoch()).count());
}

void add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  if (extension == nullptr) throw std::runtime_error("not an extension: " + value);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

struct Parties {
  EVP_PKEY* subject_key;
  X509* issuer;  // null: the certificate itself
  EVP_PKEY* issuer_key;
};

Handle<X509> make_certificate(const std::string& common_name, const Parties& parties, const TestCa::Wanted& wanted) {
  static long serial = 1;
  Handle<X509> certificate(X509_new());
  X509* const made = certificate.get();
  X509* const issuer = parties.issuer == nullptr ? made : parties.issuer;
  X509_set_version(made, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made), serial++);
  set_time(X509_getm_notBefore(made), wanted.from);
  set_time(X509_getm_notAfter(made), wanted.until);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(made), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1, 0);
  X509_set_issuer_name(made, X509_get_subject_name(issuer));
  X509_set_pubkey(made, parties.subject_key);
  add_extension(made, issuer, NID_basic_constraints, wanted.is_ca ? "critical,CA:TRUE" : "critical,CA:FALSE");
  add_extension(made, issuer, NID_key_usage, wanted.is_ca ? "critical,keyCertSign" : "critical,digitalSignature");
  add_extension(made, issuer, NID_subject_key_identifier, "hash");
  if (issuer != made) add_extension(made, issuer, NID_authority_key_identifier, "keyid:always");
  if (!wanted.usage.empty()) add_extension(made, issuer, NID_ext_key_usage, wanted.usage);
  if (!wanted.names.empty()) add_extension(made, issuer, NID_subject_alt_name, wanted.names);
  if (X509_sign(made, parties.issuer_key, EVP_get_digestbyname(wanted.digest)) == 0)
    throw std::runtime_error("cannot sign");
  return certificate;
}

void write(const std::string& path, const std::string& text, mode_t mode) {
  std::ofstream(path, std::ios::trunc) << text;
  if (chmod(path.c_str(), mode) != 0) throw std::runtime_error("cannot write " + path);
}

}  // namespace

TestCa::TestCa(const std::string& common_name, PopInstant until, const std::string& key)
    : key_(new_key(key)),
      certificate_(make_certificate(common_name, {key_.get(), nullptr, key_.get()},
                                    {.names = "", .until = until, .usage = "", .is_ca = true})),
      pem_(pem_of(certificate_.get())) {}

TestCa::Issued TestCa::issue(const Wanted& wanted) const {
  const Handle<EVP_PKEY> key = new_key(wanted.key);
  const auto certificate = make_certificate("a node", {key.get(), certificate_.get(), key_.get()}, wanted);
  return {pem_of(certificate.get()), pem_of(key.get())};
}

TlsFiles write_tls_files(const std::string& folder, const std::string& node, const TestCa::Issued& issued,
                         const std::string& ca_pem) {
  const TlsFiles files{.certificate = folder + "/" + node + ".pem",
                       .private_key = folder + "/" + node + ".key",
                       .ca = folder + "/" + node + ".ca.pem"};
  write(files.certificate, issued.certificate, 0644);
  write(files.private_key, issued.private_key, 0600);
  write(files.ca, ca_pem, 0644);
  return files;
}

SharedTlsCredentials test_credentials(const std::string& folder, const std::string& node, const TestCa::Issued& issued,
                                      const std::string& ca_pem) {
  auto credentials = TlsCredentials::load(write_tls_files(folder, node, issued, ca_pem), {"test", node});
  if (!credentials) throw std::runtime_error(credentials.error());
  return *std::move(credentials);
}

}  // namespace popgate
