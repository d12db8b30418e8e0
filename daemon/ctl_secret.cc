// SPDX-License-Identifier: Apache-2.0
#include "daemon/ctl_secret.h"

#include "daemon/hash_secret.h"
#include "daemon/hash_text.h"

namespace popgate {

Result<std::string> secret_command(const CtlCommand& command) {
  const Result<HashSecret> secret =
      command.name == "secret-new" ? create_secret(command.secret_file) : load_secret(command.secret_file);
  if (!secret) return Error{secret.error()};
  return hash_text(secret_id(*secret));
}

}  // namespace popgate
