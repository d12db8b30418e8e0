// SPDX-License-Identifier: Apache-2.0
//
// Unpacks gzip and zstd streams.
//
// A gzip file may hold several members one after the other (logs appended while compressed); zlib's own file reader
// would do that too, but not from a stream of which the first bytes were already looked at. What stands behind the last
// member and is none is an error at its end, with its place and length; zeros to the end are a tape's padding.
//
// Threads: one thread a source.
// Invariants: 1. Every byte before an error was handed out: who reads on to the error has all that could be read.
// Limits: memory of one decompressor (zstd windows above its default limit of 128 MiB are refused by the library).
#pragma once

#include <memory>
#include <string>

#include "replay/log_reader.h"

namespace popgate {

[[nodiscard]] std::unique_ptr<ByteSource> unpack_gzip(std::unique_ptr<ByteSource> packed, std::string name);
[[nodiscard]] std::unique_ptr<ByteSource> unpack_zstd(std::unique_ptr<ByteSource> packed, std::string name);

}  // namespace popgate
