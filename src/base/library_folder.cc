#include "base/library_folder.h"

#include <dlfcn.h>

#include <filesystem>

#include "base/error.h"

namespace headrace {

std::string library_folder() {
  Dl_info info{};
  HEADRACE_CHECK(dladdr(reinterpret_cast<const void*>(&library_folder), &info) != 0 && info.dli_fname != nullptr,
                 "the dynamic loader does not know the image of this function");
  return std::filesystem::path(info.dli_fname).parent_path().string();
}

}  // namespace headrace
