// Holds BoundOutputs to its property over random programs that end in values of data-dependent size.
#include "kit/random.h"
#include "ops/algorithm/select.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/reduce.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"
#include "passes/tests/bounds_testing.h"
#include "passes/tests/random_programs.h"
#include "relay/infer/infer_type.h"

namespace headrace::passes {
namespace {

const DataType kInt64 = DataType::int_(64), kFloat32 = DataType::float_(32);

Expr typed_in(const Expr& expr, const IRModule& module) { return relay::infer_type(expr, module); }

const Array<PrimExpr>& dims_of(const Expr& expr) { return expr->checked_type().as<TensorTypeNode>()->shape; }

// The axis of unknown size.
int64_t open_axis_of(const Expr& expr) {
  const auto& dims = dims_of(expr);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!as_int(dims[i])) return static_cast<int64_t>(i);
  }
  return -1;
}

// A value of unknown size over `data`, whose size is known.
Expr open_value(kit::Random& random, const Expr& data) {
  const auto rank = static_cast<int64_t>(dims_of(data).size());
  const Expr condition = ops::binary("greater", data, relay::make_scalar(random.chance(0.2f) ? -100 : 0.1));
  if (rank == 0 || random.chance(0.6f)) return ops::argwhere(condition);
  // The first ones of an axis, as many as elements are above; negative: all but so many.
  const int64_t axis = random.integer(0, rank - 1);
  Expr end = ops::reshape(ops::reduce("sum", ops::cast(condition, kInt64)), {1});
  if (random.chance(0.3f)) end = ops::unary("negative", end);
  const auto vector = [](int64_t value) {
    return relay::make_constant(NDArray::from_vector<int64_t>({1}, kInt64, {value}));
  };
  return ops::strided_slice(data, vector(0), end, vector(1), Shape{axis});
}

Shape shuffled_axes(kit::Random& random, int64_t rank) {
  Shape axes;
  for (int64_t i = 0; i < rank; ++i) axes.insert(axes.begin() + random.integer(0, i), i);
  return axes;
}

// One op that reads each index of the open axis by itself.
Expr next_of(kit::Random& random, const Expr& value) {
  const auto rank = static_cast<int64_t>(dims_of(value).size());
  const int64_t axis = open_axis_of(value);
  const DataType dtype = value->checked_type().as<TensorTypeNode>()->dtype;
  switch (random.integer(0, 8)) {
    case 0:
      return ops::cast(value, dtype == kInt64 ? kFloat32 : kInt64);
    case 1:
      return ops::unary(random.chance(0.5f) ? "negative" : "abs", value);
    case 2:
      return ops::binary(random.chance(0.5f) ? "maximum" : "subtract", value, relay::make_scalar(1, dtype));
    case 3: {  // along the last axis, or along all others
      if (axis == rank - 1) return ops::add(relay::make_scalar(2, dtype), value);
      NDArray row = NDArray::empty({*as_int(dims_of(value)[static_cast<size_t>(rank - 1)])}, dtype);
      for (int64_t i = 0; i < row.num_elements(); ++i) set_element_int(row.tensor(), i, random.integer(-2, 2));
      return ops::multiply(value, relay::make_constant(row));
    }
    case 4:
      return ops::transpose(value, shuffled_axes(random, rank));
    case 5:
      return rank > 3 ? value : ops::expand_dims(value, random.integer(0, rank), 1);
    case 6: {
      const auto table = NDArray::from_vector<float>({5}, kFloat32, {0.5, -1, 2, 3, -0.25});
      return ops::take(relay::make_constant(table), ops::cast(value, kInt64), 0, random.chance(0.5f) ? "clip" : "wrap");
    }
    case 7: {
      const int64_t other = random.integer(0, rank - 1);
      return other == axis ? value : ops::strided_slice(value, Shape{0}, Shape{1}, {}, Shape{other});
    }
    default: {
      int64_t row = 1;
      for (int64_t i = 1; axis == 0 && i < rank; ++i) row *= *as_int(dims_of(value)[static_cast<size_t>(i)]);
      // -1 beside a 0 could be any number.
      return axis != 0 || row == 0 ? ops::unary("sign", value) : ops::reshape(value, {-1, row, 1});
    }
  }
}

// `program` with one to three results of unknown size more, one of them through a let.
IRModule with_open_results(const IRModule& program, uint64_t seed) {
  kit::Random random(seed);
  const auto& main = *program->lookup("main").as<relay::FunctionNode>();
  std::vector<const relay::LetNode*> lets;
  Expr result = main.body;
  for (; result.is<relay::LetNode>(); result = result.as<relay::LetNode>()->body)
    lets.push_back(result.as<relay::LetNode>());
  Array<Expr> items = result.as<relay::TupleNode>()->items;
  const size_t known = items.size();
  const Expr first = typed_in(open_value(random, items[random.index(known)]), program);
  const auto shared = relay::make_var("open", first->checked_type());
  for (int64_t i = random.integer(1, 3); i > 0; --i) {
    Expr value = random.chance(0.5f) ? typed_in(shared, program)
                                     : typed_in(open_value(random, items[random.index(known)]), program);
    for (int64_t k = random.integer(0, 5); k > 0; --k) value = typed_in(next_of(random, value), program);
    items.push_back(value);
  }
  Expr body = relay::make_let(shared, first, relay::make_tuple(items));
  for (size_t i = lets.size(); i-- > 0;) body = relay::make_let(lets[i]->var, lets[i]->value, body);
  const IRModule module = snapshot(program);
  module->add_function(make_global_var("main"), relay::make_function(main.params, body), true);
  return relay::infer_type(module);
}

std::optional<std::string> bounded_results_differ(const IRModule& before, const IRModule& after, uint64_t seed) {
  kit::Random random(seed);
  const auto inputs = kit::random_inputs(before, random);
  const auto want = interp::run_main(before, inputs), all = interp::run_main(after, inputs);
  if (want.size() >= all.size()) return "no extents";
  const auto got = cut_outputs(main_of(after), all, want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    if (!want[i].content_equal(got[i])) return fmt::format("result {} became another", i);
  }
  return std::nullopt;
}

TEST(RandomPrograms, BoundedOutputsKeepTheResults) {
  EXPECT_TRUE(kit::holds(property_of_programs([](const Program& p) -> std::optional<std::string> {
    const IRModule before = with_open_results(p.module(), p.seed);
    const IRModule after = run_pass("BoundOutputs", before);
    auto failure = bounded_results_differ(before, after, p.seed);
    if (!failure) return std::nullopt;
    return fmt::format("{}\nbefore:\n{}after:\n{}", *failure, relay::print_module(before), relay::print_module(after));
  })));
}

}  // namespace
}  // namespace headrace::passes
