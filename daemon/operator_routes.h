// SPDX-License-Identifier: Apache-2.0
//
// Connects the admin socket to what answers it: docs/admin-api.md's paths to views and orders.
//
// Threads: the event loop's.
#pragma once

#include <functional>

#include "daemon/metrics.h"

namespace popgate {

class AdminServer;
class OperatorBrakes;
class OperatorOrders;
class OperatorViews;

/// All of them outlive the server. `visit` walks every metric of the daemon.
void add_operator_routes(AdminServer& server, const OperatorViews& views, OperatorOrders& orders,
                         OperatorBrakes& brakes, std::function<void(const MetricVisitor&)> visit);

}  // namespace popgate
