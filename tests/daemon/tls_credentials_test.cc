// SPDX-License-Identifier: Apache-2.0
#include "daemon/tls_credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/daemon/publish/test_folder.h"
#include "tests/daemon/test_ca.h"

namespace popgate {
namespace {

using std::chrono::hours;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class TlsCredentialsTest : public testing::Test {
 protected:
  const TestFolder folder{"/tmp"};
  const TestCa ca{"our CA"};
  const TestCa other_ca{"another CA"};

  TlsFiles write(const TestCa::Issued& issued, const std::string& ca_pem) const {
    return write_tls_files(folder.path(), "a", issued, ca_pem);
  }
  static Result<SharedTlsCredentials> load(const TlsFiles& files) { return TlsCredentials::load(files, {"test", "a"}); }
  std::string refusal(const TestCa::Issued& issued, const std::string& ca_pem) const {
    const auto loaded = load(write(issued, ca_pem));
    return loaded ? "loaded" : loaded.error();
  }
};

TEST_F(TlsCredentialsTest, what_fits_together_is_loaded) {
  const auto loaded = load(write(ca.issue_to("test", "a"), ca.pem()));
  ASSERT_TRUE(loaded) << loaded.error();
  EXPECT_EQ((*loaded)->name().text(), "popgate://test/a");
  EXPECT_EQ((*loaded)->alarm(PopClock::now()), "");
}

TEST_F(TlsCredentialsTest, several_cas_are_believed_while_one_replaces_another) {
  EXPECT_TRUE(load(write(ca.issue_to("test", "a"), other_ca.pem() + ca.pem())));
  EXPECT_TRUE(load(write(other_ca.issue_to("test", "a"), other_ca.pem() + ca.pem())));
}

TEST_F(TlsCredentialsTest, a_certificate_of_another_node_or_pop_is_refused) {
  EXPECT_THAT(refusal(ca.issue_to("test", "b"), ca.pem()),
              AllOf(StartsWith(folder.path() + "/a.pem: "), HasSubstr("found a certificate for \"popgate://test/b\""),
                    HasSubstr("allowed: one for \"popgate://test/a\", this node")));
  EXPECT_THAT(refusal(ca.issue_to("other", "a"), ca.pem()), HasSubstr("popgate://other/a"));
  EXPECT_THAT(refusal(ca.issue({.names = "DNS:a"}), ca.pem()), HasSubstr("allowed: one subject alternative name"));
}

TEST_F(TlsCredentialsTest, the_key_of_another_certificate_is_refused) {
  auto issued = ca.issue_to("test", "a");
  issued.private_key = ca.issue_to("test", "a").private_key;
  EXPECT_THAT(refusal(issued, ca.pem()), AllOf(HasSubstr("a.key: found the key of another certificate"),
                                               HasSubstr("allowed: the one of " + folder.path() + "/a.pem")));
}

TEST_F(TlsCredentialsTest, a_key_that_others_may_read_is_refused) {
  const TlsFiles files = write(ca.issue_to("test", "a"), ca.pem());
  chmod(files.private_key.c_str(), 0640);
  EXPECT_THAT(load(files).error(),
              HasSubstr("a.key: found mode 0640, allowed: 0600 or 0400 (others must not read the private key)"));
}

TEST_F(TlsCredentialsTest, a_certificate_that_does_not_lead_to_the_ca_is_refused) {
  EXPECT_THAT(refusal(other_ca.issue_to("test", "a"), ca.pem()),
              AllOf(HasSubstr("a.pem: found the certificate \"popgate://test/a\" (issuer \"CN = another CA\")"),
                    HasSubstr("a CA of " + folder.path() + "/a.ca.pem")));
}

TEST_F(TlsCredentialsTest, a_certificate_for_servers_or_clients_alone_is_refused) {
  for (const char* usage : {"serverAuth", "clientAuth"}) {
    EXPECT_THAT(refusal(ca.issue({.names = "URI:popgate://test/a", .usage = usage}), ca.pem()),
                HasSubstr("allowed: one for client and server"))
        << usage;
  }
}

// OpenSSL would take none of these for a handshake, at the start or later.
TEST_F(TlsCredentialsTest, keys_and_digests_that_are_too_weak_are_refused) {
  EXPECT_THAT(refusal(ca.issue({.names = "URI:popgate://test/a", .key = "RSA1024"}), ca.pem()),
              AllOf(HasSubstr("a.pem: found the certificate \"popgate://test/a\""), HasSubstr("RSA of 1024 bits"),
                    HasSubstr("key too weak, allowed: RSA of 2048 bits or more")));
  const TestCa weak("weak CA", PopClock::now() + hours(10), "RSA1024");
  EXPECT_THAT(refusal(weak.issue_to("test", "a"), weak.pem()),
              AllOf(HasSubstr("a.ca.pem: found the certificate \"CN = weak CA\""), HasSubstr("RSA of 1024 bits")));
  EXPECT_THAT(refusal(ca.issue({.names = "URI:popgate://test/a", .digest = "SHA1"}), ca.pem()),
              AllOf(HasSubstr("a.pem: found"), HasSubstr("digest"), HasSubstr("signed by SHA-256 or better")));
  EXPECT_THAT(refusal(ca.issue({.names = "URI:popgate://test/a", .key = "secp256k1"}), ca.pem()),
              HasSubstr("a.key: found an EC key, secp256k1, allowed: RSA of 2048"));
}

TEST_F(TlsCredentialsTest, keys_that_tls_knows_are_loaded) {
  for (const char* key : {"RSA2048", "P-256", "P-384", "P-521"}) {
    EXPECT_EQ(refusal(ca.issue({.names = "URI:popgate://test/a", .key = key}), ca.pem()), "loaded") << key;
  }
}

TEST_F(TlsCredentialsTest, files_of_other_kinds_are_refused) {
  const auto issued = ca.issue_to("test", "a");
  EXPECT_THAT(refusal({"rubbish", issued.private_key}, ca.pem()), HasSubstr("a.pem: found what is no certificate"));
  EXPECT_THAT(refusal({issued.certificate, "rubbish"}, ca.pem()), HasSubstr("a.key: found what is no private key"));
  EXPECT_THAT(refusal(issued, ""), HasSubstr("a.ca.pem: found what is no certificate"));
  EXPECT_THAT(refusal(issued, issued.certificate), HasSubstr("which is no CA's, allowed: CAs only"));
  EXPECT_THAT(refusal({issued.certificate.substr(0, 200), issued.private_key}, ca.pem()), HasSubstr("no certificate"));
  const std::string damaged = issued.certificate + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  EXPECT_THAT(refusal({damaged, issued.private_key}, ca.pem()), HasSubstr("no certificate"));
  std::string cas;
  for (int i = 0; i <= kCaCertificatesMax; ++i) cas += ca.pem();
  EXPECT_THAT(refusal(issued, cas), HasSubstr("found more than 64 certificates"));
  EXPECT_THAT(refusal(issued, std::string(kPemBytesMax + 1, ' ')), HasSubstr("found more than 1048576 bytes"));
  TlsFiles files = write(issued, ca.pem());
  std::filesystem::remove(files.certificate);
  EXPECT_THAT(load(files).error(), HasSubstr("a.pem: cannot open it"));
}

TEST_F(TlsCredentialsTest, a_certificate_that_has_run_out_is_loaded_and_is_an_alarm) {
  const PopInstant now = PopClock::now();
  const auto with = [&](PopInstant from, PopInstant until) {
    return test_credentials(folder.path(), "a",
                            ca.issue({.names = "URI:popgate://test/a", .from = from, .until = until}), ca.pem());
  };
  EXPECT_THAT(with(now - hours(48), now - hours(1))->alarm(now), HasSubstr("has expired at"));
  EXPECT_THAT(with(now + hours(1), now + hours(24))->alarm(now), HasSubstr("is not valid before"));
  EXPECT_THAT(with(now - hours(1), now + hours(25) + std::chrono::minutes(30))->alarm(now),
              HasSubstr("in 1 days and 1 hours"));
  EXPECT_EQ(with(now - hours(1), now + kCertificateWarning + hours(1))->alarm(now), "");
}

TEST_F(TlsCredentialsTest, a_cas_end_is_the_certificates_end) {
  const PopInstant now = PopClock::now();
  const TestCa ending("ending CA", now + hours(10));
  const auto loaded = test_credentials(folder.path(), "a", ending.issue_to("test", "a"), ending.pem());
  EXPECT_LT(loaded->valid_until(), now + hours(11));
  EXPECT_THAT(loaded->alarm(now), HasSubstr("or its CA's expires at"));
}

TEST_F(TlsCredentialsTest, reading_the_same_files_again_is_noticed) {
  const auto issued = ca.issue_to("test", "a");
  const auto once = test_credentials(folder.path(), "a", issued, ca.pem());
  EXPECT_TRUE(once->same_as(*test_credentials(folder.path(), "a", issued, ca.pem())));
  EXPECT_FALSE(once->same_as(*test_credentials(folder.path(), "a", issued, ca.pem() + other_ca.pem())));
  EXPECT_FALSE(once->same_as(*test_credentials(folder.path(), "a", ca.issue_to("test", "a"), ca.pem())));
}

TEST_F(TlsCredentialsTest, scripts_make_certs_makes_files_that_fit_and_renews_them) {
  const std::string command =
      POPGATE_SOURCE_DIR "/scripts/make-certs --days 3 " + folder.path() + " test a b > /dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  const TlsFiles files{folder.file("a.pem"), folder.file("a.key"), folder.file("ca.pem")};
  const auto first = load(files);
  ASSERT_TRUE(first) << first.error();
  const auto left = (*first)->valid_until() - PopClock::now();
  EXPECT_LT(left, hours(73));
  EXPECT_GT(left, hours(71));
  ASSERT_EQ(std::system(command.c_str()), 0);
  const auto second = load(files);
  ASSERT_TRUE(second) << second.error();
  EXPECT_FALSE((*first)->same_as(**second));
  for (const char* name : {"ca.key", "a.key", "b.key"}) {
    struct stat about {};
    ASSERT_EQ(stat(folder.file(name).c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0600U) << name;
  }
}

}  // namespace
}  // namespace popgate
