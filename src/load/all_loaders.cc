#include "load/all_loaders.h"

#include <mutex>

#include "load/artifact_module.h"

namespace headrace::load {

void register_all_loaders() {
  static std::once_flag once;
  std::call_once(once,
                 [] { runtime::register_module_loader(std::string(kArtifactModuleKind), &load_artifact_binary); });
}

}  // namespace headrace::load
