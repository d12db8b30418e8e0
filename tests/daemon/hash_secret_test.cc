// SPDX-License-Identifier: Apache-2.0
#include "daemon/hash_secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <vector>

namespace popgate {
namespace {

using testing::HasSubstr;

class HashSecretFile : public testing::Test {
 protected:
  HashSecretFile() {
    char name[] = "/tmp/popgate-secret-XXXXXX";
    folder_ = mkdtemp(name);
    path = folder_ + "/hash.secret";
  }
  ~HashSecretFile() override {
    unlink(path.c_str());
    EXPECT_EQ(rmdir(folder_.c_str()), 0) << "something was left behind";
  }
  void write(const std::string& text, mode_t mode) const {
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
  }
  std::string path;

 private:
  std::string folder_;
};

TEST_F(HashSecretFile, is_32_hexadecimal_digits) {
  write("00112233445566778899AABBccddeeff\n", 0400);
  const auto secret = load_secret(path);
  ASSERT_TRUE(secret.ok()) << secret.error();
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(secret->bytes[i], i * 0x11);
}

TEST_F(HashSecretFile, anything_else_is_refused) {
  for (const std::string& text : {std::string(), std::string(31, 'a'), std::string(33, 'a'), std::string(31, 'a') + "g",
                                  std::string(32, 'a') + "\nx", std::string(100, 'a')}) {
    write(text, 0600);
    const auto secret = load_secret(path);
    EXPECT_FALSE(secret.ok());
    EXPECT_THAT(secret.error(), HasSubstr("allowed: 32 hexadecimal digits")) << text;
  }
}

TEST_F(HashSecretFile, one_that_others_may_touch_is_refused) {
  for (const mode_t mode : {0604U, 0640U, 0620U, 0601U}) {
    write(std::string(32, 'a'), mode);
    EXPECT_THAT(load_secret(path).error(), HasSubstr("others must not read the secret")) << mode;
  }
}

TEST_F(HashSecretFile, what_is_not_there_or_not_a_file_is_refused) {
  EXPECT_THAT(load_secret(path).error(), HasSubstr("cannot open it"));
  EXPECT_THAT(load_secret("/dev/null").error(), HasSubstr("not a file"));
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(load_secret(path).error(), HasSubstr("not a file"));
}

TEST_F(HashSecretFile, is_made_once_and_kept) {
  const auto made = load_or_create_secret(path);
  ASSERT_TRUE(made.ok()) << made.error();
  EXPECT_NE(*made, HashSecret{});
  struct stat about {};
  ASSERT_EQ(stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777U, 0600U);
  const auto again = load_or_create_secret(path);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*made, *again);
}

TEST_F(HashSecretFile, a_damaged_one_is_not_replaced) {
  write("damaged", 0600);
  EXPECT_FALSE(load_or_create_secret(path).ok());
}

TEST_F(HashSecretFile, a_new_one_is_never_written_over_another) {
  const auto made = create_secret(path);
  ASSERT_TRUE(made.ok()) << made.error();
  struct stat about {};
  ASSERT_EQ(stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777U, 0600U);
  EXPECT_THAT(create_secret(path).error(), HasSubstr("a secret is never written over"));
  EXPECT_EQ(*load_secret(path), *made);
}

TEST(SecretId, differs_with_the_secret_and_is_the_same_for_the_same) {
  HashSecret secret;
  const std::uint64_t zero = secret_id(secret);
  EXPECT_EQ(secret_id(secret), zero);
  secret.bytes[15] = 1;
  EXPECT_NE(secret_id(secret), zero);
}

TEST_F(HashSecretFile, its_folder_must_exist) { EXPECT_FALSE(load_or_create_secret(path + "/none/hash.secret").ok()); }

}  // namespace
}  // namespace popgate
