// libFuzzer entry: the text form of tir. Accepted input prints, and the print reads back as an equal program, up to
// free variables; the verifier accepts or refuses it.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "object/structural_equal.h"
#include "tir/parse.h"
#include "tir/print.h"
#include "tir/verify.h"

using namespace headrace;

namespace {

// Returns the module, or null, and why, where the text is not a program.
IRModule read(std::string_view text, std::string& error) {
  try {
    return tir::parse_module(text);
  } catch (const UserError& e) {
    error = e.what();
    return {};
  }
}

// Returns the text of a module; empty where it has none.
std::string print(const IRModule& module) {
  try {
    return tir::print_module(module);
  } catch (const UserError&) {
    return {};
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string error;
  const IRModule module = read({reinterpret_cast<const char*>(data), size}, error);
  if (!module) return 0;
  for (const auto& [var, function] : module->functions()) tir::find_breaches(function.cast<tir::PrimFuncNode>());
  const std::string text = print(module);
  if (text.empty()) return 0;
  const IRModule again = read(text, error);
  if (!again || !structural_equal(Value(module), Value(again), {.map_free_vars = true})) {
    std::fprintf(stderr, "does not read back: %s\n%s\n", error.c_str(), text.c_str());
    std::abort();
  }
  return 0;
}
