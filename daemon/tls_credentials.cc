// SPDX-License-Identifier: Apache-2.0
#include "daemon/tls_credentials.h"

#include <algorithm>
#include <vector>

#include "daemon/private_file.h"

namespace popgate {
namespace {

using openssl::Handle;

// What is under a passphrase has nobody to ask for it: no passphrase, rather than a prompt on the terminal.
int no_passphrase(char*, int, int, void*) { return -1; }

/// Every certificate of a PEM text, in its order; an error that does not name the file yet.
Result<std::vector<X509*>> certificates_of(const std::string& pem, int most, std::vector<Handle<X509>>& owned) {
  const Handle<BIO> reader = openssl::reader_of(pem);
  while (X509* const certificate = PEM_read_bio_X509(reader.get(), nullptr, no_passphrase, nullptr)) {
    owned.emplace_back(certificate);
    if (owned.size() > static_cast<std::size_t>(most)) {
      return Error{"found more than " + std::to_string(most) + " certificates, allowed: at most as many"};
    }
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string why = openssl::take_error();
  if (owned.empty() || !at_end) {
    return Error{"found what is no certificate (" + why + "), allowed: certificates in PEM form"};
  }
  std::vector<X509*> certificates;
  for (const auto& certificate : owned) certificates.push_back(certificate.get());
  return certificates;
}

/// Adds what a file says to what tells two credentials apart.
void add_to_hash(std::string& hash, std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  std::string both = hash;
  both.reserve(hash.size() + text.size());  // so that growing leaves no copy of a key behind
  both += text;
  POPGATE_ASSERT(EVP_Digest(both.data(), both.size(), digest, &bytes, EVP_sha256(), nullptr) == 1);
  OPENSSL_cleanse(both.data(), both.size());
  hash.assign(reinterpret_cast<const char*>(digest), bytes);
}

constexpr char kKeysAllowed[] = "RSA of 2048 bits or more, EC P-256, P-384 or P-521, Ed25519 or Ed448";

/// "an EC key, secp256k1", "a key, RSA of 1024 bits".
std::string key_text(const EVP_PKEY* key) {
  const char* const kind = key == nullptr ? nullptr : EVP_PKEY_get0_type_name(key);
  if (kind == nullptr) return "a key of an unknown kind";
  char group[32] = "";
  if (EVP_PKEY_get_group_name(key, group, sizeof group, nullptr) == 1) return std::string("an EC key, ") + group;
  ERR_clear_error();
  return "a key, " + std::string(kind) + " of " + std::to_string(EVP_PKEY_get_bits(key)) + " bits";
}

/// Of a kind that TLS 1.3 can sign a handshake with; how strong it is is looked at with the way to the CA.
bool is_of_tls(const EVP_PKEY* key) {
  for (const char* const kind : {"RSA", "RSA-PSS", "ED25519", "ED448"}) {
    if (EVP_PKEY_is_a(key, kind) == 1) return true;
  }
  if (EVP_PKEY_is_a(key, "EC") != 1) return false;
  char group[32] = "";
  if (EVP_PKEY_get_group_name(key, group, sizeof group, nullptr) != 1) ERR_clear_error();
  const int curve = OBJ_sn2nid(group);
  return curve == NID_X9_62_prime256v1 || curve == NID_secp384r1 || curve == NID_secp521r1;
}

bool is_weakness(int error) {
  return error == X509_V_ERR_EE_KEY_TOO_SMALL || error == X509_V_ERR_CA_KEY_TOO_SMALL ||
         error == X509_V_ERR_CA_MD_TOO_WEAK;
}

}  // namespace

Result<SharedTlsCredentials> TlsCredentials::load(const TlsFiles& files, const CertificateName& own) {
  ERR_clear_error();
  std::shared_ptr<TlsCredentials> loaded(new TlsCredentials);
  if (Status read = loaded->read_certificates(files.certificate, own); !read) return Error{read.error()};
  if (Status read = loaded->read_key(files); !read) return Error{read.error()};
  if (Status read = loaded->read_trusted(files.ca); !read) return Error{read.error()};
  if (Status trusted = loaded->check_trusted(files); !trusted) return Error{trusted.error()};
  return SharedTlsCredentials(std::move(loaded));
}

Status TlsCredentials::read_certificates(const std::string& path, const CertificateName& own) {
  const auto pem = read_public_file(path, kPemBytesMax);
  if (!pem) return Error{pem.error()};
  std::vector<Handle<X509>> owned;
  if (const auto read = certificates_of(*pem, kChainMax + 1, owned); !read) return Error{path + ": " + read.error()};
  certificate_ = std::move(owned.front());
  chain_.reset(sk_X509_new_null());
  for (std::size_t i = 1; i < owned.size(); ++i) sk_X509_push(chain_.get(), owned[i].release());
  auto name = name_in(certificate_.get());
  if (!name) return Error{path + ": " + name.error()};
  if (*name != own) {
    return Error{path + ": found a certificate for \"" + name->text() + "\", allowed: one for \"" + own.text() +
                 "\", this node"};
  }
  name_ = *std::move(name);
  add_to_hash(text_hash_, *pem);
  return {};
}

Status TlsCredentials::read_key(const TlsFiles& files) {
  auto pem = read_private_file(files.private_key, kPemBytesMax, "the private key");
  if (!pem) return Error{pem.error()};
  {
    const Handle<BIO> reader = openssl::reader_of(*pem);
    private_key_.reset(PEM_read_bio_PrivateKey(reader.get(), nullptr, no_passphrase, nullptr));
  }
  add_to_hash(text_hash_, *pem);
  OPENSSL_cleanse(pem->data(), pem->size());
  if (private_key_ == nullptr) {
    return Error{files.private_key + ": found what is no private key (" + openssl::take_error() +
                 "), allowed: a private key in PEM form without a passphrase"};
  }
  if (X509_check_private_key(certificate_.get(), private_key_.get()) != 1) {
    ERR_clear_error();
    return Error{files.private_key + ": found the key of another certificate, allowed: the one of " +
                 files.certificate};
  }
  if (is_of_tls(private_key_.get())) return {};
  return Error{files.private_key + ": found " + key_text(private_key_.get()) + ", allowed: " + kKeysAllowed};
}

Status TlsCredentials::read_trusted(const std::string& path) {
  const auto pem = read_public_file(path, kPemBytesMax);
  if (!pem) return Error{pem.error()};
  std::vector<Handle<X509>> owned;
  const auto read = certificates_of(*pem, kCaCertificatesMax, owned);
  if (!read) return Error{path + ": " + read.error()};
  trusted_.reset(X509_STORE_new());
  for (X509* const certificate : *read) {
    if (X509_check_ca(certificate) == 0) {
      return Error{path + ": found the certificate " + describe_certificate(certificate) +
                   ", which is no CA's, allowed: CAs only"};
    }
    X509_STORE_add_cert(trusted_.get(), certificate);
  }
  // What stands in the file is trusted itself, also when it is not a root.
  X509_STORE_set_flags(trusted_.get(), X509_V_FLAG_PARTIAL_CHAIN);
  add_to_hash(text_hash_, *pem);
  return {};
}

// A CA that the node's own certificate does not lead to would let in peers that refuse this node.
Status TlsCredentials::check_trusted(const TlsFiles& files) {
  for (const int purpose : {X509_PURPOSE_SSL_CLIENT, X509_PURPOSE_SSL_SERVER}) {
    const Handle<X509_STORE_CTX> context(X509_STORE_CTX_new());
    X509_STORE_CTX_init(context.get(), trusted_.get(), certificate_.get(), chain_.get());
    X509_STORE_CTX_set_purpose(context.get(), purpose);
    X509_STORE_CTX_set_flags(context.get(), X509_V_FLAG_NO_CHECK_TIME);
    X509_VERIFY_PARAM_set_auth_level(X509_STORE_CTX_get0_param(context.get()), kTlsSecurityLevel);
    if (X509_verify_cert(context.get()) != 1) return distrusted(context.get(), files);
    const STACK_OF(X509)* const way = X509_STORE_CTX_get0_chain(context.get());
    valid_from_ = PopInstant::min();
    valid_until_ = PopInstant::max();
    for (int i = 0; i < sk_X509_num(way); ++i) {
      valid_from_ = std::max(valid_from_, popgate::valid_from(sk_X509_value(way, i)));
      valid_until_ = std::min(valid_until_, popgate::valid_until(sk_X509_value(way, i)));
    }
  }
  return {};
}

Error TlsCredentials::distrusted(const X509_STORE_CTX* context, const TlsFiles& files) const {
  ERR_clear_error();
  const int error = X509_STORE_CTX_get_error(context);
  const std::string why = X509_verify_cert_error_string(error);
  const X509* const culprit = X509_STORE_CTX_get_current_cert(context);
  if (is_weakness(error) && culprit != nullptr) {
    const bool is_sent = X509_STORE_CTX_get_error_depth(context) <= sk_X509_num(chain_.get());
    return Error{(is_sent ? files.certificate : files.ca) + ": found the certificate " + describe_certificate(culprit) +
                 " with " + key_text(X509_get0_pubkey(culprit)) + ": " + why + ", allowed: " + kKeysAllowed +
                 ", signed by SHA-256 or better"};
  }
  return Error{files.certificate + ": found the certificate " + describe_certificate(certificate_.get()) + ": " + why +
               ", allowed: one for client and server that leads to a CA of " + files.ca};
}

std::string TlsCredentials::alarm(PopInstant now) const {
  const std::string own = "this node's certificate \"" + name_.text() + "\" ";
  if (now < valid_from_) return own + "is not valid before " + certificate_time_text(valid_from_) + ": peers refuse it";
  if (now > valid_until_) {
    return own + "or its CA's has expired at " + certificate_time_text(valid_until_) + ": peers refuse it";
  }
  const auto left = std::chrono::floor<std::chrono::hours>(valid_until_ - now);
  if (left >= kCertificateWarning) return {};
  return own + "or its CA's expires at " + certificate_time_text(valid_until_) + ", in " +
         std::to_string(left.count() / 24) + " days and " + std::to_string(left.count() % 24) + " hours";
}

}  // namespace popgate
