// Compares DynamicToStatic with the interpreter where integers wrap, and where earlier inferred types have changed.
#include <gmock/gmock.h>

#include <set>

#include "kit/errors.h"
#include "kit/property.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/creation.h"
#include "ops/tensor/elementwise.h"
#include "passes/tests/pass_testing.h"
#include "relay/visit.h"

namespace headrace::passes {
namespace {

// A program without inputs, of integers near the limits of their dtypes; its result is all that it computes.
class IntegerProgram {
 public:
  explicit IntegerProgram(uint64_t seed, int steps) : random_(seed) {
    for (int i = 0; i < 6; ++i) add_constant(kDtypes[i < 3 ? 0 : random_.index(std::size(kDtypes))]);
    for (int i = 0; i < steps; ++i) add_step();
  }
  IRModule module() const {
    Array<Expr> items;
    for (const Item& item : items_) items.push_back(item.expr);
    return relay::infer_type(make_module(relay::make_function({}, relay::make_tuple(items))));
  }

 private:
  struct Item {
    Expr expr;
    DataType dtype;
  };
  static constexpr DataType kDtypes[] = {DataType::int_(32), DataType::int_(8), DataType::int_(16),
                                         DataType::int_(64), DataType::uint(8), DataType::uint(16),
                                         DataType::uint(32), DataType::uint(64)};

  const Item& any() { return items_[random_.index(items_.size())]; }
  Item any_of(DataType dtype) {
    const Item& item = any();
    return item.dtype == dtype ? item : Item{ops::cast(item.expr, dtype), dtype};
  }

  void add_constant(DataType dtype) {
    const NDArray data = NDArray::empty(random_.chance(0.5F) ? Shape{} : Shape{2}, dtype);
    for (int64_t i = 0; i < data.num_elements(); ++i) {
      const int64_t half = int64_t{1} << (dtype.bits() - 2);
      const int64_t near[] = {0, half, 2 * (half - 1) + 1, -2 * (half - 1) - 2};
      const int64_t around = near[random_.index(std::size(near))];
      // Cut to the dtype's low bits.
      const auto element = static_cast<uint64_t>(around) + static_cast<uint64_t>(random_.integer(-3, 3));
      set_element_int(data.tensor(), i, static_cast<int64_t>(element));
    }
    items_.push_back({relay::make_constant(data), dtype});
  }

  void add_step() {
    static constexpr std::string_view kBinary[] = {"add",          "subtract",  "multiply", "divide",
                                                   "trunc_divide", "maximum",   "minimum",  "floor_divide",
                                                   "floor_mod",    "trunc_mod", "subtract", "add"};
    static constexpr std::string_view kComparison[] = {"less", "greater_equal", "equal", "not_equal"};
    const Item a = any(), b = any_of(a.dtype);
    switch (random_.index(5)) {
      case 0:
        items_.push_back({ops::unary("negative", a.expr), a.dtype});
        break;
      case 1:
        items_.push_back(any_of(kDtypes[random_.index(std::size(kDtypes))]));
        break;
      case 2: {
        const Expr test = ops::binary(kComparison[random_.index(std::size(kComparison))], a.expr, b.expr);
        items_.push_back({ops::where(test, b.expr, any_of(a.dtype).expr), a.dtype});
        break;
      }
      default:
        items_.push_back({ops::binary(kBinary[random_.index(std::size(kBinary))], a.expr, b.expr), a.dtype});
    }
  }

  kit::Random random_;
  std::vector<Item> items_;
};

struct Seeded {
  uint64_t seed = 0;
  int steps = 0;
};

std::set<std::string> kinds_of_items(const IRModule& module) {
  std::set<std::string> kinds;
  const Expr body = module->lookup("main").cast<relay::FunctionNode>()->body;
  for (const Expr& item : body.as<relay::TupleNode>()->items) kinds.insert(std::string(item->key()));
  return kinds;
}

std::optional<std::string> integers_differ(const IRModule& a, const IRModule& b) {
  const auto want = interp::run_main(a, {}), got = interp::run_main(b, {});
  if (want.size() != got.size()) return "another number of results";
  for (size_t r = 0; r < want.size(); ++r) {
    if (want[r].shape() != got[r].shape() || want[r].dtype() != got[r].dtype()) return "another type of result";
    for (int64_t i = 0; i < want[r].num_elements(); ++i) {
      const int64_t x = element_as_int(want[r].tensor(), i), y = element_as_int(got[r].tensor(), i);
      if (x != y) return fmt::format("result {}[{}]: {} became {}", r, i, x, y);
    }
  }
  return std::nullopt;
}

TEST(DynamicToStatic, IntegersWrapAsTheInterpreterSays) {
  ops::register_all_ops();
  std::set<std::string> kinds;  // known values became constants, and values that may have wrapped did not
  kit::Property<Seeded> property;
  property.runs_ci = 300;
  property.runs_full = 5000;
  property.generate = [](kit::Random& random) {
    return Seeded{random.next(), static_cast<int>(random.integer(1, 20))};
  };
  property.shrink = [](const Seeded& p) {
    return p.steps > 1 ? std::vector<Seeded>{{p.seed, p.steps / 2}, {p.seed, p.steps - 1}} : std::vector<Seeded>{};
  };
  property.show = [](const Seeded& p) { return relay::print_module(IntegerProgram(p.seed, p.steps).module()); };
  property.check = [&kinds](const Seeded& p) {
    const IRModule before = IntegerProgram(p.seed, p.steps).module(), after = run_pass("DynamicToStatic", before);
    kinds.merge(kinds_of_items(after));
    return integers_differ(before, after);
  };
  EXPECT_TRUE(kit::holds(property));
  EXPECT_TRUE(kinds.contains("relay.Call") && kinds.contains("relay.Constant"));
}

std::string body_after(const std::string& body) {
  const IRModule after = run_pass("DynamicToStatic", read("def @main() { " + body + " }"));
  return relay::print_module(after);
}

TEST(DynamicToStatic, OnlyWhatDidNotWrapBecomesAConstant) {
  using ::testing::HasSubstr;
  EXPECT_THAT(body_after("divide(add(2147483646, 1), 2)"), HasSubstr("1073741823"));
  EXPECT_THAT(body_after("divide(add(2147483647, 1), 2)"), HasSubstr("%0 = add(2147483647, 1);\n  divide(%0, 2)\n"));
  EXPECT_THAT(body_after("cast(subtract(1u8, 2u8), dtype=\"int32\")"),
              HasSubstr("%0 = subtract(1u8, 2u8);\n  cast(%0, "));
  EXPECT_THAT(body_after("cast(subtract(3u8, 2u8), dtype=\"int32\")"), HasSubstr("{\n  1\n}"));
  EXPECT_THAT(body_after("cast(5000000000i64, dtype=\"int32\")"), HasSubstr("cast(5000000000i64"));
  EXPECT_THAT(body_after("cast(-3i64, dtype=\"int16\")"), HasSubstr("{\n  -3i16\n}"));
}

// A program that was typed, in which a rewrite exchanged one constant for another.
TEST(DynamicToStatic, TakesTheValuesThatAreThereNow) {
  const IRModule before =
      read("def @main(%x: Tensor[(2, 3), float32]) { let %s = const(Tensor[(2), int64], [2, 3]); reshape(%x, %s) }");
  const Expr main = before->lookup("main");
  const NDArray sizes = NDArray::empty({2}, kIndexType);
  for (const int64_t i : {0, 1}) set_element_int(sizes.tensor(), i, 3 - i);
  const Expr changed = relay::rewrite_post_order(main, [&](const Expr&, const Expr& after) {
    return after.is<relay::ConstantNode>() ? Expr(relay::make_constant(sizes)) : after;
  });
  const IRModule module = relay::infer_type(make_module(changed.cast<relay::FunctionNode>()));
  const IRModule after = run_pass("DynamicToStatic", module);
  EXPECT_THAT(relay::print_module(after), ::testing::HasSubstr("newshape=[3, 2]"));
  expect_same_results(module, after, {ramp({2, 3}, 0.5f)}, 0);
}

// -1 would find a size where the program asks for another one.
TEST(DynamicToStatic, AnUnknownSizeIsLeftToReshapeWhereTheElementsTellIt) {
  using ::testing::HasSubstr;
  const auto after = [](const std::string& params, const std::string& sizes) {
    const std::string text = "def @main(" + params + ") { reshape(%x, " + sizes + ") }";
    return relay::print_module(run_pass("DynamicToStatic", read(text)));
  };
  const std::string rows = "concatenate((strided_slice(shape_of(%x, dtype=\"int64\"), begin=[0], end=[1]), ";
  EXPECT_THAT(after("%x: Tensor[(n, 2, 3), float32]", rows + "const(Tensor[(1), int64], [6])))"),
              HasSubstr("newshape=[-1, 6]"));
  EXPECT_THAT(after("%x: Tensor[(n), float32]", "const(Tensor[(2), int64], [-1, 3])"), HasSubstr("newshape=[-1, 3]"));
  const std::string two = "%x: Tensor[(6), float32], %y: Tensor[(n, 3), float32]";
  EXPECT_THAT(after(two, "shape_of(%y)"), HasSubstr("reshape(%x, %0)"));
  const IRModule module = read("def @main(" + two + ") { reshape(%x, shape_of(%y)) }");
  const IRModule result = run_pass("DynamicToStatic", module);
  expect_same_results(module, result, {ramp({6}, 0.5f), ramp({2, 3}, 0.5f)}, 0);
  for (const IRModule& each : {module, result}) {
    EXPECT_THAT(kit::user_error_of([&] { interp::run_main(each, {ramp({6}, 0.5f), ramp({1, 3}, 0.5f)}); }),
                HasSubstr("reshape"));
  }
}

}  // namespace
}  // namespace headrace::passes
