// libFuzzer entry: the text form of relay. Accepted input prints, and the print reads back as an equal program, up to
// free symbols; type inference gives types or errors.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "object/structural_equal.h"
#include "ops/all_ops.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"
#include "relay/verify.h"

using namespace headrace;

namespace {

constexpr StructuralOptions kUpToFreeSymbols{.map_free_vars = true};

// Returns the module, or null, and why, where the text is not a program.
IRModule read(std::string_view text, std::string& error) {
  try {
    return relay::parse_module(text);
  } catch (const UserError& e) {
    error = e.what();
    return {};
  }
}

[[noreturn]] void fail(const IRModule& module, const IRModule& again, const std::string& text, std::string why) {
  if (const auto mismatch = again ? first_mismatch(Value(module), Value(again), kUpToFreeSymbols) : std::nullopt)
    why = mismatch->path + ": " + mismatch->reason + ": " + mismatch->left + " / " + mismatch->right;
  std::fprintf(stderr, "does not read back: %s\n%s\n", why.c_str(), text.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ops::register_all_ops();
  std::string error;
  const IRModule module = read({reinterpret_cast<const char*>(data), size}, error);
  if (!module) return 0;
  try {
    const std::string text = relay::print_module(module);
    const IRModule again = read(text, error);
    if (!again || !structural_equal(Value(module), Value(again), kUpToFreeSymbols)) fail(module, again, text, error);
    relay::verify(module);
    relay::infer_type(module);
  } catch (const UserError&) {
    // No text form, a breach of the rules, or a type error.
  }
  return 0;
}
