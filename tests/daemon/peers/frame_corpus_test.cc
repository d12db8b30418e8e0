// SPDX-License-Identifier: Apache-2.0
// What the fuzz target of frames begins from: without a seed of a kind, chance hardly ever makes one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "daemon/peers/frame.h"
#include "daemon/peers/wire.h"

namespace popgate::wire {
namespace {

using ::testing::HasSubstr;

/// What the frames of all seeds are, and why some are refused.
struct Corpus {
  std::set<std::string> kinds;
  std::string faults;
};

void note(const Message& message, Corpus& corpus) {
  corpus.kinds.emplace(kind_name(message));
  if (const auto* hello = std::get_if<Hello>(&message)) {
    if (hello->secrets.size() == 1) corpus.kinds.insert("hello with a secret");
    if (hello->secrets.size() == 2) corpus.kinds.insert("hello with two secrets");
  }
  if (const auto* brakes = std::get_if<Brakes>(&message)) {
    for (const Brake& brake : brakes->brakes) corpus.kinds.emplace(brake.off ? "brake off" : "brake on");
  }
  const auto* beat = std::get_if<Heartbeat>(&message);
  if (beat == nullptr) return;
  if (beat->digest) corpus.kinds.insert("digest");
  if (beat->certificate_until) corpus.kinds.insert("certificate");
  if (beat->figures && !beat->figures->rules.empty()) corpus.kinds.insert("figures of rules");
  if (!beat->count_lag) return;
  for (const ShardLag& shard : beat->count_lag->shards) {
    corpus.kinds.insert("lag");
    if (shard.uncertain_most == kUncertainMax) corpus.kinds.insert("lag cut to its bound");
  }
}

Corpus corpus_of_the_target() {
  Corpus corpus;
  for (const auto& entry :
       std::filesystem::directory_iterator(POPGATE_SOURCE_DIR "/tests/fuzz/corpus/mesh_frame_fuzz")) {
    std::ostringstream bytes;
    bytes << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    FrameReader reader;
    reader.append(bytes.view().substr(1));  // the first byte says how it is cut
    while (const auto payload = reader.next()) {
      const auto message = decode(*payload);
      if (message) note(*message, corpus);
      if (!message) corpus.faults += message.error() + "\n";
    }
  }
  return corpus;
}

TEST(FrameCorpus, has_every_kind_of_message_and_what_they_may_carry) {
  const Corpus corpus = corpus_of_the_target();
  for (const char* kind : {"hello", "refused", "entry", "snapshot end", "heartbeat", "ack", "goodbye", "brakes",
                           "hello with a secret", "hello with two secrets", "brake off", "brake on", "digest",
                           "certificate", "figures of rules", "lag", "lag cut to its bound"}) {
    EXPECT_TRUE(corpus.kinds.contains(kind)) << kind;
  }
}

TEST(FrameCorpus, breaks_every_bound_of_brakes_figures_lags_and_secrets) {
  const Corpus corpus = corpus_of_the_target();
  for (const char* field :
       {"hello.secrets: found 9", "brakes: found 129", "brake.ordered_by bytes: found 65", "figures.rules: found 65",
        "heartbeat.count_lag.shards: found 257", "heartbeat.count_lag.shards.shard: found 65536"}) {
    EXPECT_THAT(corpus.faults, HasSubstr(field));
  }
}

}  // namespace
}  // namespace popgate::wire
