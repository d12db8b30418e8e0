// SPDX-License-Identifier: Apache-2.0
// mesh.tls in the configuration file, and the files that it names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "daemon/config.h"
#include "daemon/tls_credentials.h"
#include "tests/daemon/publish/test_folder.h"
#include "tests/daemon/test_ca.h"

namespace popgate {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kFar =
    "node: a\npop: test\nhash_secret_file: secret\n"
    "mesh:\n  listen: 0.0.0.0:1\n  peers: [{node: b, address: \"192.0.2.9:1\"}]\n";
const std::string kTls = "  tls: {certificate: a.pem, private_key: a.key, ca: a.ca.pem}\n";

std::string faults_of(const ConfigOutcome& outcome) {
  std::string text;
  for (const ConfigFault& fault : outcome.faults) text += fault.text() + "\n";
  return text;
}

TEST(ConfigTls, a_mesh_with_it_may_span_machines) {
  const auto outcome = parse_config(kFar + kTls, "/etc/popgate/p.yaml");
  ASSERT_TRUE(outcome.config.has_value()) << faults_of(outcome);
  ASSERT_TRUE(outcome.config->mesh->tls.has_value());
  EXPECT_EQ(outcome.config->mesh->tls->files,
            (TlsFiles{"/etc/popgate/a.pem", "/etc/popgate/a.key", "/etc/popgate/a.ca.pem"}));
  EXPECT_EQ(outcome.config->mesh->tls->credentials, nullptr) << "a mere parse reads no files";
}

TEST(ConfigTls, all_three_files_are_required) {
  EXPECT_EQ(faults_of(parse_config(kFar + "  tls: {certificate: a.pem}\n", "p.yaml")),
            "p.yaml:7:8: mesh.tls.private_key: found nothing, allowed: the path of a file\n"
            "p.yaml:7:8: mesh.tls.ca: found nothing, allowed: the path of a file\n");
  EXPECT_THAT(faults_of(parse_config(kFar + "  tls:\n", "p.yaml")), HasSubstr("mesh.tls: found nothing"));
  EXPECT_THAT(faults_of(parse_config(kFar + "  tls: {certificate: \"\", private_key: b, ca: c}\n", "p.yaml")),
              HasSubstr("mesh.tls.certificate: found \"\", allowed: the path of a file"));
}

class ConfigTlsFiles : public testing::Test {
 protected:
  ConfigTlsFiles() {
    std::ofstream(folder.file("secret")) << "000102030405060708090a0b0c0d0e0f";
    chmod(folder.file("secret").c_str(), 0600);
    std::ofstream(folder.file("p.yaml")) << kFar << kTls;
  }
  const TestFolder folder{"/tmp"};
  const TestCa ca;
};

TEST_F(ConfigTlsFiles, are_loaded_from_beside_the_configuration) {
  (void)write_tls_files(folder.path(), "a", ca.issue_to("test", "a"), ca.pem());
  const auto outcome = load_config(folder.file("p.yaml"));
  ASSERT_TRUE(outcome.config.has_value()) << faults_of(outcome);
  ASSERT_NE(outcome.config->mesh->tls->credentials, nullptr);
  EXPECT_EQ(outcome.config->mesh->tls->credentials->name().text(), "popgate://test/a");
}

TEST_F(ConfigTlsFiles, for_another_node_are_a_fault_at_their_place) {
  (void)write_tls_files(folder.path(), "a", ca.issue_to("test", "b"), ca.pem());
  EXPECT_THAT(faults_of(load_config(folder.file("p.yaml"))),
              AllOf(HasSubstr("p.yaml:7:8: mesh.tls: found files that cannot be used: " + folder.file("a.pem")),
                    HasSubstr("allowed: one for \"popgate://test/a\", this node")));
}

TEST_F(ConfigTlsFiles, that_have_expired_are_no_fault) {
  const PopInstant now = PopClock::now();
  (void)write_tls_files(
      folder.path(), "a",
      ca.issue(
          {.names = "URI:popgate://test/a", .from = now - std::chrono::hours(2), .until = now - std::chrono::hours(1)}),
      ca.pem());
  EXPECT_TRUE(load_config(folder.file("p.yaml")).config.has_value()) << "the daemon must start and read its rules";
}

}  // namespace
}  // namespace popgate
