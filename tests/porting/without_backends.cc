// Built with src/driver/all_backends.cc of a build without the optional backends: naming one of them must tell the
// option that left it out. Returns 0 if it does.
#include <cstdio>
#include <string>

#include "base/error.h"
#include "driver/all_backends.h"

namespace {

bool tells(const std::string& backend, const std::string& words) {
  std::string told = "no error";
  try {
    headrace::driver::register_all_backends();
    headrace::driver::require_backend(backend);
  } catch (const headrace::UserError& error) {
    told = error.what();
  }
  const bool is_right = told.find(words) != std::string::npos;
  std::printf("%s: %s%s\n", backend.c_str(), told.c_str(), is_right ? "" : " (wrong)");
  return is_right;
}

}  // namespace

int main() {
  const bool are_right[] = {
      tells("ccompiler", "the backend 'ccompiler' was left out of this build; configure it with -DUSE_CODEGENC=ON"),
      tells("examplejson", "'examplejson' was left out of this build; configure it with -DUSE_EXAMPLEJSON=ON"),
      tells("examplejsoncompiler", "left out of this build; configure it with -DUSE_EXAMPLEJSON=ON"),
      tells("nobody", "there is no backend 'nobody'; there are none in this build"),
  };
  for (const bool is_right : are_right) {
    if (!is_right) return 1;
  }
  return 0;
}
