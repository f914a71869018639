#include "load/all_loaders.h"

#include <mutex>

#if HEADRACE_USE_EXAMPLEJSON
#include "backends/examplejson/run/graph_module.h"
#endif
#include "backends/plugin/run/own_plugins.h"
#include "load/artifact_module.h"
#include "load/load_module.h"
#include "object/reserved_global.h"
#include "runtime/const_module.h"
#include "runtime/own_kinds.h"

namespace headrace::load {

void register_all_loaders() {
  static std::once_flag once;
  std::call_once(once, [] {
    runtime::register_module_loader(std::string(kArtifactModuleKind), &load_artifact_binary);
    runtime::register_apart_loader(std::string(runtime::kConstModuleKind), &runtime::load_const_module);
    for (const std::string_view kind : runtime::kOwnKinds)
      reserve_global(fmt::format("{}{}", runtime::kLoadBinaryPrefix, kind),
                     "modules of this kind are Headrace's own; give yours another kind");
    reserve_global(fmt::format("{}so", kLoadFilePrefix), kWhyNoLoaderOfSo);
#if HEADRACE_USE_EXAMPLEJSON
    backends::examplejson::register_loaders();
#endif
#if HEADRACE_USE_ONEDNN
    backends::plugin::register_own_loader("onednn");
#endif
  });
}

}  // namespace headrace::load
