// Built with src/driver/all_backends.cc of a build without the optional backends: a compile for one of them must name
// the option that left it out. Returns 0 if it does.
#include <cstdio>
#include <string>

#include "base/error.h"
#include "driver/all_backends.h"
#include "driver/compile.h"
#include "driver/register_all.h"
#include "relay/text/parse.h"

namespace {

// The driver is this program's, and so is its list of backends; all else is the library's.
bool tells(const std::string& backend, const std::string& words) {
  std::string told = "no error";
  try {
    headrace::driver::register_all();
    const headrace::IRModule module =
        headrace::relay::parse_module("#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2), float32]) { nn.relu(%x) }\n");
    headrace::driver::compile_to_memory(headrace::driver::make_model(module), {.backends = {backend}});
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
      tells("null", "'null' was left out of this build; configure it with -DUSE_NULL=ON"),
      tells("onednn", "'onednn' was left out of this build; configure it with -DUSE_ONEDNN=ON"),
      tells("dnnl", "left out of this build; configure it with -DUSE_ONEDNN=ON"),
      tells("nobody", "there is no backend 'nobody'; there are none in this build"),
  };
  for (const bool is_right : are_right) {
    if (!is_right) return 1;
  }
  return 0;
}
