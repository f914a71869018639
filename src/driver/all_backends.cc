#include "driver/all_backends.h"

#include <algorithm>
#include <array>

#include "driver/plugins.h"
#include "ir/near_names.h"
#include "partition/place.h"

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

// The backends of python/headrace/backends, which Python registers.
constexpr auto kInPython = std::to_array<std::string_view>({"numpy", "onnxruntime"});

std::optional<BackendSource>& backend_source() {
  static std::optional<BackendSource> source;
  return source;
}

// Returns NAME for the function relay.ext.NAME, which makes a backend; empty for other functions.
std::string name_of_compiler(const std::string& function) {
  if (!function.starts_with(kRegionCompilerPrefix)) return "";
  const std::string name = function.substr(std::string_view(kRegionCompilerPrefix).size());
  return name.find('.') == std::string::npos ? name : "";
}

[[noreturn]] void throw_unknown(const std::string& name) {
  if (name == partition::kNative)
    throw_user_error("'native' is not a backend: native code computes what no backend takes; leave the name out");
  if (name.empty())
    throw_user_error("the name of a backend is empty; give names with commas between them, as in onednn,ccompiler");
  const std::vector<std::string> known = known_backends();
  const std::vector<std::string> near = near_names(name, known, '-');
  if (name.ends_with(".py"))
    throw_user_error(
        "'{0}' is not the name of a backend; give a file of Python by `python -m headrace ... --plugin {0}`, and "
        "the name of its class in place of the file",
        name);
  if (name.find('/') != std::string::npos || name.ends_with(".so"))
    throw_user_error(
        "'{}' is not the name of a backend; give a library by --plugin (headrace.load_backend in Python), and name its "
        "backend",
        name);
  std::string hint = "; give the library of another one by --plugin (headrace.load_backend in Python)";
  if (!backend_source()) hint += "; `python -m headrace` also has those of Python's packages";
  if (!near.empty()) hint = fmt::format("; did you mean {}?", fmt::join(near, " or "));
  throw_user_error("there is no backend '{}'; there are {}, and those that a program registers as {}NAME{}", name,
                   known.empty() ? "none in this build" : fmt::format("{}", fmt::join(known, ", ")),
                   kRegionCompilerPrefix, hint);
}

}  // namespace

void set_backend_source(std::optional<BackendSource> source) { backend_source() = source; }

std::vector<std::string> source_backends() {
  return backend_source() ? backend_source()->names() : std::vector<std::string>();
}

std::vector<std::string> known_backends() {
  std::vector<std::string> names = partition::backend_names();
  for (const std::string& name : global_names()) {
    if (auto own = name_of_compiler(name); !own.empty()) names.push_back(std::move(own));
  }
  for (std::string& name : source_backends()) names.push_back(std::move(name));
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

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

std::shared_ptr<const partition::Backend> find_backend(const std::string& name) {
  if (auto backend = partition::find_backend(name)) return backend;
  if (backend_source()) backend_source()->offer(name);
  return partition::find_backend(name);
}

std::string why_missing(const std::string& name) {
  for (const Row& row : kBackends) {
    if (row.is_named(name))
      return fmt::format("the backend '{}' was left out of this build; configure it with -D{}=ON", name, row.option);
  }
  if (std::find(kInPython.begin(), kInPython.end(), name) == kInPython.end()) return "";
  return fmt::format(
      "the backend '{}' is one of the Python package; run `python -m headrace` in place of `headrace`, or give it in "
      "Python: hr.compile(..., backends=[\"{}\"])",
      name, name);
}

std::shared_ptr<const partition::Backend> require_backend(const std::string& name) {
  if (backend_source() && backend_source()->find_checks != nullptr) backend_source()->find_checks(name);
  if (auto backend = find_backend(name)) return backend;
  if (const std::string why = why_missing(name); !why.empty()) throw_user_error("{}", why);
  throw_unknown(name);
}

}  // namespace headrace::driver
