// Rules of cumulative sums and products, with one pass over each line.
#include "ops/algorithm/scan.h"

#include "lower/kernel_rule.h"
#include "lower/rules/rule.h"

namespace headrace::lower {

namespace {

KernelRuleFn scan_rule(Combiner combiner) {
  return [combiner](const KernelInput& input) {
    const auto& attrs = input.attrs<ops::ScanopAttrs>();
    const Line &data = input.inputs[0], &out = input.outputs[0];
    const AxisSplit split(out.shape, normal_axis(attrs.axis.value_or(0), out.shape.size()));
    const DataType dtype = wide_type(out.buffer->dtype);
    if (out.size() == 0) return tir::make_seq({});
    return each_parallel(input, split.lines(), out.size(), [&](const PrimExpr& line) {
      return with_cell(dtype, [&](const Cell& total) {
        const tir::Stmt steps = each(split.size, [&](const PrimExpr& k) {
          const PrimExpr at = split.line_begin(line) + k * split.inner;
          const tir::Stmt step = total.set(tir::combine(combiner, total.get(), make_cast(dtype, wide(data.item(at))))),
                          write = out.set_item(at, total.get());
          return attrs.exclusive ? tir::make_seq({write, step}) : tir::make_seq({step, write});
        });
        return tir::make_seq({total.set(tir::identity_of(combiner, dtype)), steps});
      });
    });
  };
}

}  // namespace

void register_scan_rules() {
  set_kernel_rule("cumsum", scan_rule(Combiner::sum));
  set_kernel_rule("cumprod", scan_rule(Combiner::prod));
}

}  // namespace headrace::lower
