// SPDX-License-Identifier: Apache-2.0
#include "daemon/certificate_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>

#include "tests/daemon/test_ca.h"

namespace popgate {
namespace {

using testing::AllOf;
using testing::HasSubstr;

openssl::Handle<X509> certificate_with(const std::string& names) {
  static const TestCa ca("the CA");
  const std::string pem = ca.issue({.names = names}).certificate;
  return openssl::Handle<X509>(PEM_read_bio_X509(openssl::reader_of(pem).get(), nullptr, nullptr, nullptr));
}

std::string refusal_of(const std::string& names) {
  const auto name = name_in(certificate_with(names).get());
  return name ? "accepted as " + name->text() : name.error();
}

TEST(CertificateName, is_a_uri_of_pop_and_node) {
  const CertificateName name{"fra", "fra-1.example"};
  EXPECT_EQ(name.text(), "popgate://fra/fra-1.example");
  EXPECT_EQ(parse_certificate_name(name.text()), name);
  for (const char* other : {"", "popgate://", "popgate://fra", "popgate://fra/", "popgate:///a", "popgate://fra/a/",
                            "popgate://fra/a/b", "popgate://fra/a b", "POPGATE://fra/a", "https://fra/a",
                            "popgate://fra/a?x", "popgate://u@fra/a", "popgate://fra:1/a", "popgate://fra/%61"}) {
    EXPECT_EQ(parse_certificate_name(other), std::nullopt) << other;
  }
  EXPECT_EQ(parse_certificate_name(std::string("popgate://fra/a\0b", 17)), std::nullopt);
}

TEST(CertificateName, is_found_among_other_names_of_the_certificate) {
  const auto name = name_in(certificate_with("DNS:b.example,URI:https://b.example/,URI:popgate://fra/a").get());
  ASSERT_TRUE(name) << name.error();
  EXPECT_EQ(name->text(), "popgate://fra/a");
}

TEST(CertificateName, is_none_in_a_web_servers_certificate) {
  EXPECT_THAT(refusal_of("DNS:a,DNS:a.example"),
              AllOf(HasSubstr("\"CN = a node\" without such a name"), HasSubstr("allowed: one subject alternative")));
  EXPECT_THAT(refusal_of(""), HasSubstr("without such a name"));
}

TEST(CertificateName, is_none_when_there_are_two_or_it_is_written_wrong) {
  EXPECT_THAT(refusal_of("URI:popgate://fra/a,URI:popgate://fra/b"),
              HasSubstr("found \"popgate://fra/a\" and \"popgate://fra/b\""));
  EXPECT_THAT(refusal_of("URI:popgate://fra/a/b"), HasSubstr("found \"popgate://fra/a/b\", allowed"));
}

TEST(CertificateName, describes_a_strangers_certificate_without_believing_its_bytes) {
  EXPECT_EQ(describe_certificate(certificate_with("URI:popgate://fra/a").get()),
            "\"popgate://fra/a\" (issuer \"CN = the CA\")");
  const std::string wild = describe_certificate(certificate_with("URI:popgate://" + std::string(1000, '\x1b')).get());
  EXPECT_THAT(wild, HasSubstr("\"popgate://????"));
  EXPECT_LT(wild.size(), 400U);
}

TEST(CertificateName, times_are_read_and_shown_in_utc) {
  static const TestCa ca;
  const PopInstant from{std::chrono::seconds(1'700'000'000)};   // 2023-11-14T22:13:20Z
  const PopInstant until{std::chrono::seconds(4'102'444'800)};  // 2100-01-01T00:00:00Z, beyond UTCTime's 2049
  const std::string pem = ca.issue({.names = "", .from = from, .until = until}).certificate;
  const openssl::Handle<X509> certificate(PEM_read_bio_X509(openssl::reader_of(pem).get(), nullptr, nullptr, nullptr));
  EXPECT_EQ(valid_from(certificate.get()), from);
  EXPECT_EQ(valid_until(certificate.get()), until);
  EXPECT_EQ(certificate_time_text(from), "2023-11-14T22:13:20Z");
  EXPECT_EQ(certificate_time_text(until), "2100-01-01T00:00:00Z");
}

}  // namespace
}  // namespace popgate
