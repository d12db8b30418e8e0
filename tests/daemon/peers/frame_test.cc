// SPDX-License-Identifier: Apache-2.0
#include "daemon/peers/frame.h"

#include <gtest/gtest.h>

#include <vector>

namespace popgate {
namespace {

std::vector<std::string> all_of(FrameReader& reader) {
  std::vector<std::string> payloads;
  while (const auto payload = reader.next()) payloads.emplace_back(*payload);
  return payloads;
}

TEST(Frame, is_its_length_most_significant_byte_first_and_its_payload) {
  EXPECT_EQ(frame_of("abc"), std::string("\0\0\0\3abc", 7));
  EXPECT_EQ(frame_of(std::string(258, 'x')).substr(0, 4), std::string("\0\0\1\2", 4));
}

TEST(Frame, frames_come_out_as_they_went_in_however_the_stream_is_split) {
  const std::vector<std::string> sent{"a", std::string(1000, 'b'), std::string("\0\0\0\1", 4), "z"};
  std::string stream;
  for (const std::string& payload : sent) stream += frame_of(payload);
  for (std::size_t split = 0; split <= stream.size(); ++split) {
    FrameReader reader;
    reader.append(stream.substr(0, split));
    std::vector<std::string> got = all_of(reader);
    reader.append(stream.substr(split));
    for (std::string& payload : all_of(reader)) got.push_back(std::move(payload));
    ASSERT_EQ(got, sent) << "split at " << split;
    EXPECT_FALSE(reader.broken());
  }
}

TEST(Frame, frames_come_out_of_single_bytes) {
  FrameReader reader;
  std::vector<std::string> got;
  for (const char byte : frame_of("hello") + frame_of("world")) {
    reader.append({&byte, 1});
    for (std::string& payload : all_of(reader)) got.push_back(std::move(payload));
  }
  EXPECT_EQ(got, (std::vector<std::string>{"hello", "world"}));
}

TEST(Frame, the_longest_frame_passes_and_one_byte_more_breaks_the_reader) {
  FrameReader reader;
  reader.append(frame_of(std::string(kFrameBytesMax, 'x')));
  ASSERT_TRUE(reader.next());
  reader.append(std::string("\0\1\0\1", 4));
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.broken());
  EXPECT_EQ(reader.refused_bytes(), kFrameBytesMax + 1);
}

TEST(Frame, an_empty_frame_breaks_the_reader) {
  FrameReader reader;
  reader.append(std::string(4, '\0'));
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.broken());
}

TEST(Frame, text_of_another_protocol_breaks_the_reader_for_good) {
  FrameReader reader;
  reader.append("GET / HTTP/1.1\r\n\r\n");
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.broken());
  reader.append(frame_of("late"));
  EXPECT_FALSE(reader.next());
}

TEST(Frame, a_truncated_frame_is_waited_for) {
  FrameReader reader;
  const std::string frame = frame_of("abc");
  reader.append(frame.substr(0, frame.size() - 1));
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.broken());
}

}  // namespace
}  // namespace popgate
