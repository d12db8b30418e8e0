// SPDX-License-Identifier: Apache-2.0
//
// Brakes and a node's figures to and from protobuf: the part of wire.cc that has nothing to do with the set.
//
// Threads: pure functions.
// Invariants and limits: those of wire.h.
#pragma once

#include <optional>
#include <string>

#include "daemon/peers/wire.h"

namespace popgate::mesh {
class Brakes;
class NodeFigures;
}  // namespace popgate::mesh

namespace popgate::wire {

void put(const Brakes& brakes, mesh::Brakes& out);
void put(const NodeFigures& figures, mesh::NodeFigures& out);
/// A sentence when something breaks a limit.
[[nodiscard]] std::optional<std::string> take(const mesh::Brakes& in, Brakes& brakes);
[[nodiscard]] std::optional<std::string> take(const mesh::NodeFigures& in, NodeFigures& figures);

}  // namespace popgate::wire
