#include "tools/headrace/version.h"

#include <fmt/ranges.h>

#include "artifact/manifest.h"
#include "base/error.h"
#include "codegen/native.h"
#include "driver/register_all.h"
#include "ir/target_kind.h"
#include "partition/backend.h"

namespace headrace::tools {

namespace {

std::string describe_native() {
  try {
    const codegen::NativeCompiler compiler = codegen::NativeCompiler::load();
    return fmt::format("LLVM {}, this machine: {}", compiler.llvm_version(), compiler.host_target().cpu);
  } catch (const UserError& error) {
    return error.message();
  }
}

}  // namespace

std::string describe_version() {
  driver::register_all();
  std::vector<std::string> kinds;
  for (const std::string& name : target_kind_names()) {
    if (!get_target_kind(name)->is_backend) kinds.push_back(name);
  }
  return fmt::format(
      "headrace {}\n"
      "native code: {}\n"
      "targets: {}\n"
      "backends: {}\n"
      "artifacts: version {}, reads {} to {}\n"
      "commit: {}",
      HEADRACE_VERSION, describe_native(), fmt::join(kinds, ", "), fmt::join(partition::backend_names(), ", "),
      artifact::kManifestVersion, artifact::kManifestOldest, artifact::kManifestVersion, HEADRACE_COMMIT);
}

}  // namespace headrace::tools
