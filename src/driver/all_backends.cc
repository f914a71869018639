#include "driver/all_backends.h"

#include <algorithm>
#include <array>

#include "driver/plugins.h"
#include "ir/near_names.h"

#if HEADRACE_USE_CODEGENC
#include "backends/ccompiler/compile/ccompiler.h"
#endif

#if HEADRACE_USE_EXAMPLEJSON
#include "backends/examplejson/compile/examplejson.h"
#endif

#if HEADRACE_USE_NULL
#include "backends/null/compile/null.h"
#endif

namespace headrace::driver {

namespace {

// A backend, the CMake option that includes it, and how it is made: null in a build without it.
struct Row {
  std::string_view name;
  std::array<std::string_view, 2> aliases;  // those that are not empty
  std::string_view option;
  std::shared_ptr<const partition::Backend> (*make)();

  std::vector<std::string> other_names() const {
    std::vector<std::string> names;
    for (const std::string_view alias : aliases) {
      if (!alias.empty()) names.emplace_back(alias);
    }
    return names;
  }
  bool is_named(const std::string& wanted) const {
    return wanted == name || (!wanted.empty() && std::find(aliases.begin(), aliases.end(), wanted) != aliases.end());
  }
};

constexpr auto kBackends = std::to_array<Row>({
    {"ccompiler",
     {},
     "USE_CODEGENC",
#if HEADRACE_USE_CODEGENC
     &backends::ccompiler::make_backend
#else
     nullptr
#endif
    },
    {"examplejson",
     {"examplejsoncompiler"},
     "USE_EXAMPLEJSON",
#if HEADRACE_USE_EXAMPLEJSON
     &backends::examplejson::make_backend
#else
     nullptr
#endif
    },
    {"null",
     {},
     "USE_NULL",
#if HEADRACE_USE_NULL
     &backends::null::make_backend
#else
     nullptr
#endif
    },
    {"onednn",
     {"dnnl", "mkldnn"},
     "USE_ONEDNN",
#if HEADRACE_USE_ONEDNN
     [] { return make_own_plugin_backend("onednn"); }
#else
     nullptr
#endif
    },
});

// The backends of python/headrace/backends; Python registers them, and no program has them.
constexpr auto kInPython = std::to_array<std::string_view>({"numpy", "onnxruntime"});

}  // namespace

void register_all_backends() {
  for (const Row& row : kBackends) {
    if (row.make != nullptr) partition::register_backend(row.make(), row.other_names());
  }
}

std::vector<std::pair<std::string, std::string>> left_out_backends() {
  std::vector<std::pair<std::string, std::string>> left_out;
  for (const Row& row : kBackends) {
    if (row.make == nullptr) left_out.emplace_back(row.name, row.option);
  }
  return left_out;
}

std::shared_ptr<const partition::Backend> require_backend(const std::string& name) {
  if (auto backend = partition::find_backend(name)) return backend;
  for (const Row& row : kBackends) {
    if (row.is_named(name))
      throw_user_error("the backend '{}' was left out of this build; configure it with -D{}=ON", name, row.option);
  }
  if (std::find(kInPython.begin(), kInPython.end(), name) != kInPython.end()) {
    throw_user_error("the backend '{}' is one of the Python package; give it there: hr.compile(..., backends=[\"{}\"])",
                     name, name);
  }
  const std::vector<std::string> known = partition::backend_names();
  const std::vector<std::string> near = near_names(name, known, '-');
  throw_user_error("there is no backend '{}'; there are {}, and those that a program registers as {}NAME{}", name,
                   known.empty() ? "none in this build" : fmt::format("{}", fmt::join(known, ", ")),
                   kRegionCompilerPrefix,
                   near.empty() ? "" : fmt::format("; did you mean {}?", fmt::join(near, " or ")));
}

}  // namespace headrace::driver
