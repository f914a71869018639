// Loaders that users register, called within each other.
#pragma once

#include <string>
#include <string_view>

namespace headrace::runtime {

// While it lives this thread loads `what` by the global function `loader`. UserError when it does so already: the
// loader calls itself, and would for ever.
class NestedLoad {
 public:
  // Begins a load. `what`, a file's path or a module's bytes, must outlive this object; `shown` names it in messages.
  NestedLoad(const std::string& loader, std::string_view what, const std::string& shown);
  ~NestedLoad();
  NestedLoad(const NestedLoad&) = delete;
  NestedLoad& operator=(const NestedLoad&) = delete;
};

}  // namespace headrace::runtime
