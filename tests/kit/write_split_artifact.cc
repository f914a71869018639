// Writes an artifact whose weights lie beside it, for tests of other programs.
#include <cstdio>

#include "base/error.h"
#include "driver/compile.h"
#include "kit/usage.h"

constexpr const char* kUsage =
    "usage: write_split_artifact MODEL FILE\n"
    "Compiles MODEL, models/digits.onnx, for one picture to FILE, with all its weights in FILE.safetensors.\n";

int main(int argc, char** argv) {
  using namespace headrace;
  if (const auto code = kit::exit_for_usage(argc, argv, kUsage, 2, 2)) return *code;
  try {
    const driver::Model model = driver::load_model(argv[1], {.shapes = {{"x", {1, 1, 8, 8}}}});
    driver::compile_to_file(model, argv[2], {.weights_limit_bytes = 0});
    return 0;
  } catch (const UserError& error) {
    std::fprintf(stderr, "write_split_artifact: %s\n", error.what());
    return 3;
  }
}
