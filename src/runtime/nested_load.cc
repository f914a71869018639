#include "runtime/nested_load.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"

namespace headrace::runtime {

namespace {

// The loads in progress on this thread, the outermost first: loader and content.
using Load = std::pair<std::string, std::string_view>;
std::vector<Load>& loads() {
  thread_local std::vector<Load> list;
  return list;
}

}  // namespace

NestedLoad::NestedLoad(const std::string& loader, std::string_view what, const std::string& shown) {
  Load load(loader, what);
  if (std::find(loads().begin(), loads().end(), load) != loads().end())
    throw_user_error(
        "cannot load {}: the function '{}' asks for what it was called to load, which would never end; it must make "
        "the "
        "module itself",
        shown, loader);
  loads().push_back(std::move(load));
}

NestedLoad::~NestedLoad() { loads().pop_back(); }

}  // namespace headrace::runtime
