// SPDX-License-Identifier: Apache-2.0
#include "daemon/publish/brake_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstdio>

#include "daemon/durable_file.h"
#include "daemon/file_error.h"
#include "libclient/file_descriptor.h"

namespace popgate {
namespace {

constexpr std::uint64_t kBrakeMagic = 0x314b415242475050;  // "PPGBRAK1", little-endian
constexpr std::size_t kTailBytes = 4;
static_assert(kBrakeFileBytesMax > 2 * kBrakesMax * (40 + kBrakeNameBytesMax + kReasonBytesMax));

std::uint32_t checksum_of(std::string_view bytes) {
  const auto* first = reinterpret_cast<const Bytef*>(bytes.data());
  return static_cast<std::uint32_t>(crc32(crc32(0, nullptr, 0), first, static_cast<uInt>(bytes.size())));
}

template <typename Number>
void append(std::string& out, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i) {
    out.push_back(static_cast<char>(static_cast<std::uint64_t>(number) >> 8 * i & 0xff));
  }
}

void append_text(std::string& out, std::string_view text, std::size_t most) {
  const std::string_view cut = text.substr(0, most);
  append(out, static_cast<std::uint16_t>(cut.size()));
  out += cut;
}

void append_register(std::string& out, BrakeSide side, const Brake& brake, bool untold) {
  append(out, static_cast<std::uint8_t>(side));
  append(out, static_cast<std::uint8_t>(brake.off));
  append(out, static_cast<std::uint8_t>(brake.origin));
  append(out, static_cast<std::uint8_t>(untold));
  append(out, brake.rule);
  append(out, brake.version.stamp);
  append(out, brake.version.node);
  append(out, brake.ordered_at.time_since_epoch().count());
  append_text(out, brake.ordered_by, kBrakeNameBytesMax);
  append_text(out, brake.reason, kReasonBytesMax);
}

/// Takes numbers and texts off the front; once something is missing, everything is.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <typename Number>
  [[nodiscard]] Number number() {
    std::uint64_t value = 0;
    const std::string_view bytes = take(sizeof(Number));
    for (std::size_t i = 0; i < bytes.size(); ++i) value |= std::uint64_t{static_cast<std::uint8_t>(bytes[i])} << 8 * i;
    return static_cast<Number>(value);
  }
  [[nodiscard]] std::string text(std::size_t most) {
    const auto bytes = number<std::uint16_t>();
    if (bytes > most) whole_ = false;
    return std::string(take(bytes));
  }
  [[nodiscard]] bool is_whole() const { return whole_; }
  [[nodiscard]] std::size_t left() const { return rest_.size(); }

 private:
  [[nodiscard]] std::string_view take(std::size_t bytes) {
    if (bytes > rest_.size()) whole_ = false;
    if (!whole_) return {};
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

  std::string_view rest_;
  bool whole_ = true;
};

bool read_register(Reader& reader, std::vector<StoredBrakes::Register>& registers) {
  const auto side = reader.number<std::uint8_t>();
  const auto off = reader.number<std::uint8_t>();
  const auto origin = reader.number<std::uint8_t>();
  const auto untold = reader.number<std::uint8_t>();
  Brake brake;
  brake.rule = reader.number<RuleId>();
  brake.version.stamp = reader.number<std::uint64_t>();
  brake.version.node = reader.number<NodeId>();
  brake.ordered_at = PopInstant(microseconds(reader.number<std::int64_t>()));
  brake.ordered_by = reader.text(kBrakeNameBytesMax);
  brake.reason = reader.text(kReasonBytesMax);
  brake.off = off != 0;
  brake.origin = static_cast<BrakeOrigin>(origin);
  if (!reader.is_whole() || side > 1 || off > 1 || origin >= kBrakeOrigins || untold > 1) return false;
  registers.push_back({static_cast<BrakeSide>(side), std::move(brake), untold != 0});
  return true;
}

Result<std::string> read_all(const std::string& path) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.is_open()) return file_error(path, "cannot open");
  struct stat status = {};
  if (fstat(fd.get(), &status) != 0) return file_error(path, "cannot look at");
  if (!S_ISREG(status.st_mode)) return Error{path + ": not a regular file"};
  if (status.st_size > static_cast<off_t>(kBrakeFileBytesMax)) {
    return Error{path + ": found " + std::to_string(status.st_size) + " bytes, allowed: at most " +
                 std::to_string(kBrakeFileBytesMax)};
  }
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  const ssize_t taken = pread(fd.get(), bytes.data(), bytes.size(), 0);
  if (taken != static_cast<ssize_t>(bytes.size())) return file_error(path, "cannot read");
  return bytes;
}

}  // namespace

std::string encode_brakes(const Brakes& brakes, NodeId node) {
  std::string out;
  append(out, kBrakeMagic);
  append(out, kBrakeFileVersion);
  const std::size_t count = brakes.registers(BrakeSide::kNode).size() + brakes.registers(BrakeSide::kPop).size();
  append(out, static_cast<std::uint32_t>(count));
  append(out, node);
  append(out, brakes.stamp());
  for (const BrakeSide side : {BrakeSide::kNode, BrakeSide::kPop}) {
    for (const auto& [rule, brake] : brakes.registers(side))
      append_register(out, side, brake, brakes.is_untold(side, rule));
  }
  append(out, checksum_of(out));
  return out;
}

Result<StoredBrakes> decode_brakes(std::string_view bytes, NodeId node) {
  if (bytes.size() < kTailBytes)
    return Error{"found " + std::to_string(bytes.size()) + " bytes, which are no whole file"};
  Reader reader(bytes.substr(0, bytes.size() - kTailBytes));
  if (reader.number<std::uint64_t>() != kBrakeMagic) return Error{"not a file of brakes"};
  const auto version = reader.number<std::uint32_t>();
  if (version != kBrakeFileVersion) {
    return Error{"version: found " + std::to_string(version) + ", allowed: " + std::to_string(kBrakeFileVersion)};
  }
  Reader tail(bytes.substr(bytes.size() - kTailBytes));
  if (tail.number<std::uint32_t>() != checksum_of(bytes.substr(0, bytes.size() - kTailBytes))) {
    return Error{"damaged: the checksum is wrong"};
  }
  const auto count = reader.number<std::uint32_t>();
  if (reader.number<NodeId>() != node) return Error{"another node's"};
  StoredBrakes stored;
  stored.stamp = reader.number<std::uint64_t>();
  for (std::uint32_t i = 0; i < count && i < 2 * kBrakesMax + 2; ++i) {
    if (!read_register(reader, stored.registers))
      return Error{"register " + std::to_string(i) + " is no whole register"};
  }
  if (!reader.is_whole() || reader.left() != 0 || stored.registers.size() != count) {
    return Error{"not as long as its head says"};
  }
  return stored;
}

std::optional<StoredBrakes> BrakeFile::load_named(std::string& note) const {
  struct stat status = {};
  if (::lstat(path_.c_str(), &status) != 0 && errno == ENOENT) return std::nullopt;
  const Result<std::string> bytes = read_all(path_);
  Result<StoredBrakes> stored = bytes ? decode_brakes(*bytes, node_) : Error{bytes.error()};
  if (stored) return *std::move(stored);
  const std::string aside = path_ + ".refused";
  const bool renamed = std::rename(path_.c_str(), aside.c_str()) == 0;
  note = path_ + ": what was ordered about blocking is not read: " + stored.error() +
         (renamed ? "; renamed to " + aside : "; it is replaced at the next order");
  return std::nullopt;
}

// What a daemon had written when it was killed gets its name before anything else is written over it.
std::optional<StoredBrakes> BrakeFile::load(std::string& note) const {
  std::optional<StoredBrakes> named = load_named(note);
  const Result<std::string> bytes = read_all(unfinished_name(path_));
  if (!bytes) return named;
  Result<StoredBrakes> unfinished = decode_brakes(*bytes, node_);
  if (!unfinished || (named && unfinished->stamp < named->stamp)) return named;
  SystemDisk disk;
  (void)finish_replacing(disk, path_);  // on a disk that cannot be written it is read again the next time
  return *std::move(unfinished);
}

Status BrakeFile::write(std::string_view bytes) const {
  SystemDisk disk;
  return replace_file(disk, path_, bytes);
}

}  // namespace popgate
