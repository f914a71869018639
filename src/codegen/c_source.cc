#include "codegen/c_source.h"

#include "base/error.h"
#include "codegen/c_kernel.h"

namespace headrace::codegen {

namespace {

constexpr std::string_view kHead =
    "/* Kernels, written by Headrace. Each is called as headrace/kernel_abi.h says: its inputs, then its outputs. */\n"
    "#include <math.h>\n"
    "#include <stdbool.h>\n"
    "#include <stddef.h>\n"
    "#include <stdint.h>\n"
    "#include <string.h>\n"
    "\n"
    "/* Numbers are rounded after every operation: no compiler joins a product and a sum. */\n"
    "#if defined(__clang__)\n"
    "#pragma STDC FP_CONTRACT OFF\n"
    "#elif defined(__GNUC__)\n"
    "#pragma GCC optimize(\"fp-contract=off\")\n"
    "#endif\n"
    "\n";

// The part of the installed header (and of DLPack's) that kernels use, for compilers that do not have it.
constexpr std::string_view kAbi =
    "#ifndef HEADRACE_KERNEL_ABI_H_ /* else that header came before */\n"
    "#define HEADRACE_KERNEL_ABI_H_\n"
    "typedef struct {\n"
    "  int32_t device_type, device_id;\n"
    "} DLDevice;\n"
    "typedef struct {\n"
    "  uint8_t code, bits;\n"
    "  uint16_t lanes;\n"
    "} DLDataType;\n"
    "typedef struct {\n"
    "  void* data;\n"
    "  DLDevice device;\n"
    "  int32_t ndim;\n"
    "  DLDataType dtype;\n"
    "  int64_t* shape;\n"
    "  int64_t* strides;\n"
    "  uint64_t byte_offset;\n"
    "} DLTensor;\n"
    "typedef struct hr_kernel_env hr_kernel_env;\n"
    "typedef int32_t (*hr_parallel_body)(const hr_kernel_env* env, void* closure, int64_t begin, int64_t end);\n"
    "struct hr_kernel_env {\n"
    "  uint32_t size, version;\n"
    "  void* workspace;\n"
    "  uint64_t workspace_size;\n"
    "  int32_t (*parallel_for)(const hr_kernel_env* env, hr_parallel_body body, void* closure, int64_t count);\n"
    "  int32_t (*launch)(const hr_kernel_env* env, const char* kernel, const uint32_t grid[3], const uint32_t "
    "block[3],\n"
    "                    uint32_t shared_bytes, void* const* args, int32_t num_args);\n"
    "  void* stream;\n"
    "  int32_t worker_index, num_workers;\n"
    "  char* message;\n"
    "  uint64_t message_size;\n"
    "  void* host;\n"
    "};\n"
    "#endif\n"
    "\n";

void check_symbol(const std::string& symbol) {
  if (!is_c_identifier(symbol) || is_c_reserved(symbol))
    throw_user_error(
        "the kernel '{}' cannot be written as C, since that is not a name for a function there; save another "
        "format, or give it a name of letters, digits and _ that C does not use itself",
        symbol);
}

}  // namespace

std::string c_kernel_head() { return fmt::format("{}{}", kHead, kAbi); }

std::string c_source(std::span<const tir::PrimFunc> kernels) {
  CHelpers helpers;
  std::string functions;
  for (const tir::PrimFunc& kernel : kernels) {
    check_symbol(tir::symbol_of(*kernel));
    functions += "\n" + CKernel(helpers).write(*kernel);
  }
  // A kernel is found by its symbol: no prototype comes before it.
  std::string prototypes;
  for (const tir::PrimFunc& kernel : kernels)
    prototypes +=
        fmt::format("int32_t {}(const hr_kernel_env* env, DLTensor* const* args);\n", tir::symbol_of(*kernel));
  return fmt::format("{}{}{}{}{}", kHead, kAbi, helpers.text(), prototypes, functions);
}

}  // namespace headrace::codegen
