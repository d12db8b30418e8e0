// SPDX-License-Identifier: Apache-2.0
// Who is not let into a mesh under TLS, and what both sides say about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>

#include <ostream>

#include "tests/daemon/peers/tls_pop.h"

namespace popgate {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;

/// A node b whose certificate is not what it should be, among nodes a and b.
struct Impostor {
  const char* name;
  SharedTlsCredentials (*credentials)(const TlsPop&);
  const char* kind;       // as a counts it, dialling
  const char* a_says;     // about b, which it dials
  const char* b_is_told;  // by a, which it dials
};

void PrintTo(const Impostor& impostor, std::ostream* out) { *out << impostor.name; }

SharedTlsCredentials valid_between(const TlsPop& pop, PopInstant from, PopInstant until) {
  return pop.credentials("b", pop.ca.issue({.names = "URI:popgate://test/b", .from = from, .until = until}));
}

SharedTlsCredentials of_pop(const TlsPop& pop, const std::string& pop_name, const std::string& node) {
  const TlsFiles files = write_tls_files(pop.folder.path(), "x", pop.ca.issue_to(pop_name, node), pop.ca.pem());
  return *TlsCredentials::load(files, {pop_name, node});
}

const Impostor kImpostors[] = {
    {"another_ca",
     [](const TlsPop& pop) {
       const TestCa other("another CA");
       return pop.credentials("b", other.issue_to("test", "b"), other.pem() + pop.ca.pem());
     },
     "unknown_ca",
     "TLS: unknown CA: found \"popgate://test/b\" (issuer \"CN = another CA\"), allowed: one that leads to a CA of "
     "mesh.tls.ca",
     "TLS: it refused this node (unknown CA): it does not know the CA of this node's certificate"},
    {"a_ca_of_the_same_name",
     [](const TlsPop& pop) {
       const TestCa other("CA of the test");
       return pop.credentials("b", other.issue_to("test", "b"), other.pem() + pop.ca.pem());
     },
     "unknown_ca", "TLS: unknown CA: found \"popgate://test/b\" (issuer \"CN = CA of the test\")",
     "TLS: it refused this node ("},
    {"an_expired_certificate",
     [](const TlsPop& pop) {
       return valid_between(pop, PopInstant(hours(24 * 365 * 30)), PopInstant(hours(24 * 365 * 31)));
     },
     "expired",
     "TLS: expired certificate: found \"popgate://test/b\" (issuer \"CN = CA of the test\"), valid until 2000-",
     "TLS: it refused this node (certificate expired): by its clock this node's certificate"},
    {"a_certificate_not_valid_yet",
     [](const TlsPop& pop) { return valid_between(pop, PopClock::now() + hours(1), PopClock::now() + hours(24)); },
     "not_yet_valid", "TLS: certificate not valid yet: found \"popgate://test/b\"",
     "TLS: it refused this node (bad certificate): it refuses the name in this node's certificate, or by its clock "
     "that "
     "is not valid yet"},
    {"the_certificate_of_another_node", [](const TlsPop& pop) { return of_pop(pop, "test", "c"); }, "wrong_name",
     "TLS: wrong name: found \"popgate://test/c\" (issuer \"CN = CA of the test\"), allowed: \"popgate://test/b\"",
     "it refused: wrong name: its hello says \"b\", allowed: \"c\", the node of its certificate"},
    {"the_certificate_of_another_pop", [](const TlsPop& pop) { return of_pop(pop, "other", "b"); }, "wrong_name",
     "TLS: wrong name: found \"popgate://other/b\" (issuer \"CN = CA of the test\"), allowed: \"popgate://test/b\"",
     ""},
};

class MeshTlsImpostorTest : public ::testing::TestWithParam<Impostor> {};

TEST_P(MeshTlsImpostorTest, is_refused_with_a_reason_on_both_sides_and_nothing_is_shared) {
  TlsPop pop({"a", "b"});
  pop.use_tls("b", GetParam().credentials(pop));
  pop.start_all();
  MeshNode& a = pop.node("a");
  MeshNode& b = pop.node("b");
  ASSERT_TRUE(pop.run_until([&] { return a.peer("b").losses >= 2 && b.peer("a").losses >= 2; }));
  EXPECT_THAT(a.peer("b").last_error, HasSubstr(GetParam().a_says));
  EXPECT_THAT(b.peer("a").last_error, HasSubstr(GetParam().b_is_told));
  EXPECT_GE(a.figure("popgate_peers_tls_failures", GetParam().kind), 1);
  a.decide(kClient);
  b.decide({1, 1});
  const std::uint64_t losses = a.peer("b").losses;
  ASSERT_TRUE(pop.run_until([&] { return a.peer("b").losses >= losses + 2; }));
  EXPECT_FALSE(a.blocks({1, 1}));
  EXPECT_FALSE(b.blocks(kClient));
  EXPECT_EQ(a.peer("b").connects, 0U);
  EXPECT_FALSE(a.peer("b").heard);
}

INSTANTIATE_TEST_SUITE_P(Mesh, MeshTlsImpostorTest, ::testing::ValuesIn(kImpostors),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(MeshTlsRefusal, a_member_of_the_pop_cannot_speak_for_another) {
  TlsPop pop({"a", "b", "c"});
  pop.start("a");
  pop.use_tls("b", of_pop(pop, "test", "c"));
  pop.start("b");
  ASSERT_TRUE(pop.run_until([&] { return pop.node("b").peer("a").losses >= 1; }));
  EXPECT_THAT(pop.node("b").peer("a").last_error, HasSubstr("its hello says \"b\", allowed: \"c\""));
  EXPECT_EQ(pop.node("a").figure("popgate_peers_hellos_refused"), pop.node("b").peer("a").losses);
}

TEST(MeshTlsRefusal, a_refused_peer_is_not_dialled_again_and_again) {
  TlsPop pop({"a", "b"});
  pop.use_tls("b", of_pop(pop, "other", "b"));
  pop.start("b");
  pop.start("a", [](MeshOptions& options) {
    options.timings.backoff_first = std::chrono::minutes(10);
    options.timings.backoff_longest = std::chrono::minutes(10);
  });
  ASSERT_TRUE(pop.run_until([&] { return pop.node("a").peer("b").losses == 1; }));
  const std::uint64_t losses = pop.node("b").peer("a").losses;
  ASSERT_TRUE(pop.run_until([&] { return pop.node("b").peer("a").losses >= losses + 10; })) << "b is quick to try";
  EXPECT_EQ(pop.node("a").peer("b").losses, 1U);
}

TEST(MeshTlsRefusal, a_plain_peer_and_a_peer_under_tls_both_say_what_is_missing) {
  TlsPop pop({"a", "b"});
  pop.node("b").tls.reset();
  pop.start_all();
  MeshNode& a = pop.node("a");
  MeshNode& b = pop.node("b");
  ASSERT_TRUE(pop.run_until([&] { return a.peer("b").losses >= 2 && b.peer("a").losses >= 2; }));
  ASSERT_TRUE(pop.run_until([&] { return a.figure("popgate_peers_tls_failures", "plain_text") >= 1; }));
  EXPECT_THAT(a.peer("b").last_error, HasSubstr("within the handshake (is mesh.tls missing there?)"));
  EXPECT_THAT(b.peer("a").last_error, HasSubstr("found TLS, allowed: plain text, because this node has no mesh.tls"));
  b.decide(kClient);
  const std::uint64_t losses = b.peer("a").losses;
  ASSERT_TRUE(pop.run_until([&] { return b.peer("a").losses >= losses + 2; }));
  EXPECT_FALSE(a.blocks(kClient));
}

/// Who dials a with whatever TLS he likes.
class MeshTlsStrangerTest : public ::testing::Test {
 protected:
  MeshTlsStrangerTest() : context(SSL_CTX_new(TLS_method())) { pop.start("a"); }
  openssl::Handle<SSL> connection() const { return openssl::Handle<SSL>(SSL_new(context.get())); }
  void show(const TestCa::Issued& issued) const {
    const auto certificate = openssl::reader_of(issued.certificate);
    const auto key = openssl::reader_of(issued.private_key);
    const openssl::Handle<X509> read(PEM_read_bio_X509(certificate.get(), nullptr, nullptr, nullptr));
    const openssl::Handle<EVP_PKEY> read_key(PEM_read_bio_PrivateKey(key.get(), nullptr, nullptr, nullptr));
    ASSERT_EQ(SSL_CTX_use_certificate(context.get(), read.get()), 1);
    ASSERT_EQ(SSL_CTX_use_PrivateKey(context.get(), read_key.get()), 1);
  }
  void expect_refused(const std::string& kind) {
    RawPeer stranger(pop.base(), pop.port_of("a"), connection());
    stranger.send(wire::Goodbye{});
    ASSERT_TRUE(pop.run_until([&] { return stranger.is_closed(); }));
    ASSERT_TRUE(pop.run_until([&] { return pop.node("a").figure("popgate_peers_tls_failures", kind) == 1; })) << kind;
    EXPECT_EQ(pop.node("a").figure("popgate_peers_tls_failures"), 1);
    EXPECT_TRUE(stranger.heard().empty());
    pop.start("b");
    EXPECT_TRUE(pop.run_until([&] { return pop.settled(); })) << "peers go on";
  }
  TlsPop pop{{"a", "b"}};
  const openssl::Handle<SSL_CTX> context;
};

TEST_F(MeshTlsStrangerTest, without_a_certificate_is_refused) { expect_refused("no_certificate"); }

TEST_F(MeshTlsStrangerTest, with_tls_1_2_is_refused) {
  show(pop.ca.issue_to("test", "b"));
  SSL_CTX_set_max_proto_version(context.get(), TLS1_2_VERSION);
  expect_refused("version");
}

TEST_F(MeshTlsStrangerTest, with_a_web_servers_certificate_of_the_same_ca_is_refused) {
  show(pop.ca.issue({.names = "DNS:b"}));
  expect_refused("wrong_name");
}

TEST_F(MeshTlsStrangerTest, with_a_certificate_for_servers_only_is_refused) {
  show(pop.ca.issue({.names = "URI:popgate://test/b", .usage = "serverAuth"}));
  expect_refused("bad_certificate");
}

TEST_F(MeshTlsStrangerTest, with_rubbish_behind_a_handshake_is_cut_and_counted_like_any_peer) {
  show(pop.ca.issue_to("test", "b"));
  RawPeer stranger(pop.base(), pop.port_of("a"), connection());
  stranger.send_bytes(std::string("\x7f\xff\xff\xff", 4));
  ASSERT_TRUE(pop.run_until([&] { return stranger.is_closed(); }));
  EXPECT_TRUE(stranger.is_connected());
  EXPECT_EQ(pop.node("a").figure("popgate_peers_accepted_rubbish_cuts"), 1);
}

TEST_F(MeshTlsStrangerTest, with_random_bytes_is_cut_and_counted) {
  RawPeer stranger(pop.base(), pop.port_of("a"));
  stranger.send_bytes(std::string("\x16\x03\x01\x00\x05\xff\xff\xff\xff\xff and more", 19));
  ASSERT_TRUE(pop.run_until([&] { return stranger.is_closed(); }));
  EXPECT_EQ(pop.node("a").figure("popgate_peers_tls_failures", "rubbish"), 1);
  RawPeer other(pop.base(), pop.port_of("a"));
  other.send_bytes("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(pop.run_until([&] { return other.is_closed(); }));
  EXPECT_EQ(pop.node("a").figure("popgate_peers_tls_failures", "plain_text"), 1);
}

TEST_F(MeshTlsStrangerTest, is_not_given_a_ticket_to_come_back_with) {
  show(pop.ca.issue_to("test", "b"));
  int tickets = 0;
  SSL_CTX_set_app_data(context.get(), &tickets);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_CLIENT);
  SSL_CTX_sess_set_new_cb(context.get(), [](SSL* ssl, SSL_SESSION*) {
    ++*static_cast<int*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
    return 0;
  });
  RawPeer peer(pop.base(), pop.port_of("a"), connection());
  wire::Hello hello{
      .version_min = 1, .version_max = 1, .pop = "test", .node = "b", .secret_id = 1, .members = {"a", "b"}};
  peer.send(hello);
  ASSERT_TRUE(pop.run_until([&] { return peer.heard_first<wire::Hello>() != nullptr; }));
  EXPECT_EQ(tickets, 0);
}

}  // namespace
}  // namespace popgate
