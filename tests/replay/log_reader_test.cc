// SPDX-License-Identifier: Apache-2.0
#include "replay/log_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <vector>

#include "tests/replay/temporary_file.h"

namespace popgate {
namespace {

std::string gzip(const std::string& plain) {
  std::string packed(compressBound(plain.size()) + 64, '\0');
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string input = plain;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string zstd(const std::string& plain) {
  std::string packed(ZSTD_compressBound(plain.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), 3));
  return packed;
}

struct Lines {
  std::vector<std::string> text;
  std::string error;
};

Lines lines_of(const std::string& bytes) {
  const TemporaryFile file(bytes);
  auto source = open_log_bytes(file.path());
  EXPECT_TRUE(source.ok()) << source.error();
  LineReader reader(*std::move(source));
  Lines lines;
  LogLine line;
  while (reader.next(line)) {
    EXPECT_EQ(line.number, lines.text.size() + 1);
    lines.text.emplace_back(line.text);
  }
  lines.error = reader.error();
  return lines;
}

std::string many_lines() {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += "line number " + std::to_string(i) + "\n";
  return text;
}

TEST(LogReader, last_line_counts_without_its_newline_and_an_empty_end_does_not) {
  EXPECT_EQ(lines_of("a\nb").text, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(lines_of("a\nb\n").text, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(lines_of("\n\n").text, (std::vector<std::string>{"", ""}));
  EXPECT_TRUE(lines_of("").text.empty());
}

TEST(LogReader, gzip_with_several_members_is_one_stream) {
  const Lines lines = lines_of(gzip("a\nb") + gzip("c\n") + gzip("") + gzip("d"));
  EXPECT_EQ(lines.text, (std::vector<std::string>{"a", "bc", "d"}));
  EXPECT_EQ(lines.error, "");
}

TEST(LogReader, padding_behind_the_last_gzip_member_is_ignored) {
  const Lines lines = lines_of(gzip("a\n") + std::string(1000, '\0'));
  EXPECT_EQ(lines.text, (std::vector<std::string>{"a"}));
  EXPECT_EQ(lines.error, "");
}

TEST(LogReader, what_stands_behind_the_last_gzip_member_and_is_none_is_told_with_its_place) {
  const std::string member = gzip("a\n") + gzip("b\n");
  const std::string at = " bytes at byte " + std::to_string(member.size()) + ", behind the last gzip member";
  const std::string zeros(70'000, '\0');  // more than is read at once
  for (const std::string& rest : {std::string("192.0.2.1 - plain\n"), std::string("\x1f"), std::string("\x1fno"),
                                  zeros + "x", zeros + gzip("c\n")}) {
    const Lines lines = lines_of(member + rest);
    EXPECT_EQ(lines.text, (std::vector<std::string>{"a", "b"}));
    if (rest.size() == 1) {
      EXPECT_NE(lines.error.find("ends in the middle"), std::string::npos) << "it may have been one";
      continue;
    }
    EXPECT_NE(lines.error.find("found " + std::to_string(rest.size()) + at), std::string::npos) << lines.error;
  }
}

TEST(LogReader, zstd_with_several_frames_is_one_stream) {
  const Lines lines = lines_of(zstd("a\nb") + zstd("c\n") + zstd("d"));
  EXPECT_EQ(lines.text, (std::vector<std::string>{"a", "bc", "d"}));
  EXPECT_EQ(lines.error, "");
}

TEST(LogReader, large_files_come_out_the_same_however_they_are_packed) {
  const std::string plain = many_lines();
  const Lines expected = lines_of(plain);
  ASSERT_EQ(expected.text.size(), 50'000u);
  EXPECT_EQ(expected.text[49'999], "line number 49999");
  EXPECT_EQ(lines_of(gzip(plain)).text, expected.text);
  EXPECT_EQ(lines_of(zstd(plain)).text, expected.text);
}

TEST(LogReader, packed_data_that_ends_early_gives_what_there_is_and_says_so) {
  for (const std::string& packed : {gzip(many_lines()), zstd(many_lines())}) {
    const Lines lines = lines_of(packed.substr(0, packed.size() / 2));
    EXPECT_GT(lines.text.size(), 100u);
    EXPECT_NE(lines.error.find("ends in the middle"), std::string::npos) << lines.error;
  }
}

TEST(LogReader, damaged_packed_data_is_reported) {
  std::string packed = gzip(many_lines());
  for (std::size_t i = packed.size() / 2; i < packed.size() / 2 + 64; ++i) packed[i] = '\x55';
  EXPECT_NE(lines_of(packed).error.find("damaged"), std::string::npos);
}

TEST(LogReader, line_beyond_the_bound_is_cut_and_marked_and_the_next_one_is_whole) {
  const TemporaryFile file(std::string(3 * kLineBytesMax, 'x') + "\nnext\n" + std::string(kLineBytesMax + 1, 'y'));
  auto source = open_log_bytes(file.path());
  ASSERT_TRUE(source.ok());
  LineReader reader(*std::move(source));
  LogLine line;
  ASSERT_TRUE(reader.next(line));
  EXPECT_TRUE(line.too_long);
  EXPECT_EQ(line.text.size(), kLineBytesMax);
  ASSERT_TRUE(reader.next(line));
  EXPECT_FALSE(line.too_long);
  EXPECT_EQ(line.text, "next");
  EXPECT_EQ(line.number, 2u);
  ASSERT_TRUE(reader.next(line));
  EXPECT_TRUE(line.too_long);
  EXPECT_FALSE(reader.next(line));
}

TEST(LogReader, line_of_exactly_the_bound_is_whole) {
  const Lines lines = lines_of(std::string(kLineBytesMax, 'x') + "\n" + std::string(kLineBytesMax, 'y'));
  ASSERT_EQ(lines.text.size(), 2u);
  EXPECT_EQ(lines.text[1].size(), kLineBytesMax);
}

TEST(LogReader, file_that_cannot_be_read_is_an_error_that_names_it) {
  const auto missing = open_log_bytes("/nonexistent/access.log");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().find("/nonexistent/access.log: cannot be opened"), std::string::npos) << missing.error();
  EXPECT_FALSE(open_log_bytes("/tmp").ok()) << "a folder is no log";
}

}  // namespace
}  // namespace popgate
