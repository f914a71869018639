// Compiled code rounds once for each op of a program, in fused kernels too (docs/numerics.md): no multiplication and
// addition of two ops become one, and a float16 or bfloat16 result of an op inside of a kernel is rounded to its dtype.
#include <gtest/gtest.h>

#include "driver/compile.h"
#include "interp/interp.h"
#include "kit/random.h"
#include "load/run.h"
#include "ops/all_ops.h"
#include "relay/text/parse.h"

namespace headrace::driver {
namespace {

// Elements with full mantissas, so that a product is never exact.
NDArray draw(DataType dtype, uint64_t seed) {
  kit::Random random(seed);
  NDArray data = NDArray::empty({4, 33}, dtype);
  for (int64_t i = 0; i < data.num_elements(); ++i) set_element(data.tensor(), i, random.uniform(-2, 2));
  return data;
}

TEST(Rounding, FusedOpsRoundOneByOne) {
  ops::register_all_ops();
  const DataType dtypes[] = {DataType::float_(16), DataType::bfloat16(), DataType::float_(32), DataType::float_(64)};
  for (const DataType dtype : dtypes) {
    for (const char* body :
         {"add(multiply(%x, %y), %z)", "subtract(multiply(%x, %y), multiply(%y, %z))",
          "multiply(add(add(%x, %y), %z), subtract(%x, %z))", "divide(add(multiply(%x, %x), %y), %z)",
          "add(%x, multiply(%y, divide(%z, add(%x, %y))))"}) {
      const std::string type = fmt::format("Tensor[(4, 33), {}]", dtype);
      const Model model = make_model(relay::parse_module(
          fmt::format("#[version = \"0.0.5\"]\ndef @main(%x: {}, %y: {}, %z: {}) {{ {} }}\n", type, type, type, body)));
      const std::vector<NDArray> inputs{draw(dtype, 1), draw(dtype, 2), draw(dtype, 3)};
      const NDArray want = interp::run_main(model.module, inputs).at(0);
      for (const int32_t level : {0, 3, 4}) {
        CompiledModel compiled = compile_to_memory(model, {.passes = {.opt_level = level}});
        if (level > 0) {
          EXPECT_EQ(compiled.report.manifest.programs[0].graph.steps.size(), 1u) << body;
        }
        const auto executor =
            load::make_executor(open_compiled(std::move(compiled), "test"), artifact::kDefaultProgram, {.threads = 1});
        EXPECT_TRUE(load::run(*executor, inputs).at(0).content_equal(want))
            << body << " of " << fmt::format("{}", dtype) << " at level " << level;
      }
    }
  }
}

}  // namespace
}  // namespace headrace::driver
