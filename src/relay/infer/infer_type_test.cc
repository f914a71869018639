#include "relay/infer/infer_type.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <functional>
#include <thread>

#include "ir/max_dim.h"
#include "kit/options.h"
#include "relay/op_keys.h"
#include "relay/verify.h"
#include "relay/visit.h"

namespace headrace::relay {
namespace {

using ::testing::HasSubstr;

// Ops of this test alone, so that the room needs no other: same(x) -> x's type, plus(a, b) of equal types.
std::atomic<int> relation_calls = 0;
void register_test_ops() {
  static const bool done = [] {
    Op same = register_op("test.same");
    same->num_inputs = 1;
    same->set(kTypeRelation, TypeRelationFn([](const RelationInput& input) -> Type {
                ++relation_calls;
                return input.tensor(0);
              }));
    Op plus = register_op("test.plus");
    plus->num_inputs = 2;
    plus->set(kTypeRelation, TypeRelationFn([](const RelationInput& input) -> Type {
                if (to_string(input.arg_types[0]) != to_string(input.arg_types[1])) input.fail("types differ");
                return input.tensor(0);
              }));
    plus->set(kValueInference, ValueInferenceFn([](const RelationInput& input) -> std::optional<std::vector<PrimExpr>> {
                const auto a = input.arg_value(0), b = input.arg_value(1);
                if (!a || !b) return std::nullopt;
                std::vector<PrimExpr> sum;
                for (size_t i = 0; i < a->size(); ++i) sum.push_back((*a)[i] + (*b)[i]);
                return sum;
              }));
    Op shape = register_op("test.shape");
    shape->num_inputs = 1;
    shape->set(kTypeRelation, TypeRelationFn([](const RelationInput& input) -> Type {
                 return make_tensor_type(Shape{static_cast<int64_t>(input.tensor(0)->shape.size())}, kIndexType);
               }));
    shape->set(kValueInference,
               ValueInferenceFn([](const RelationInput& input) -> std::optional<std::vector<PrimExpr>> {
                 return input.tensor(0)->shape.to_vector();
               }));
    Op of_shape = register_op("test.of_shape");
    of_shape->num_inputs = 1;
    of_shape->set(kTypeRelation, TypeRelationFn([](const RelationInput& input) -> Type {
                    const auto value = input.arg_value(0);
                    return value ? make_tensor_type(Array<PrimExpr>(*value)) : TensorType();
                  }));
    register_op("test.bare");
    return true;
  }();
  static_cast<void>(done);
}

class InferType : public ::testing::Test {
 protected:
  InferType() { register_test_ops(); }
  const PrimVar n = make_prim_var("n"), m = make_prim_var("m");
  Type tensor(Array<PrimExpr> dims, DataType dtype = DataType::float_(32)) { return make_tensor_type(dims, dtype); }
  Type row(int64_t size) { return make_tensor_type(Shape{size}); }
  const Type f32 = make_scalar_type(DataType::float_(32)), boolean = make_scalar_type(DataType::bool_());
  static std::string type_text(const Expr& e, const IRModule& module = {}) {
    return to_string(infer_type(e, module)->checked_type());
  }
  static std::string error_text(const Expr& e, const IRModule& module = {}) {
    try {
      return "typed: " + type_text(e, module);
    } catch (const UserError& error) {
      return error.what();
    }
  }
  static std::string error_text(const IRModule& module) {
    try {
      return infer_type(module) ? "typed" : "";
    } catch (const UserError& error) {
      return error.what();
    }
  }
  static Expr same(Expr x) { return make_call("test.same", {x}); }
  static Expr plus(Expr a, Expr b) { return make_call("test.plus", {a, b}); }
  IRModule module_with(std::string name, Function function) {
    IRModule module = make_module();
    module->add_function(make_global_var(std::move(name)), function);
    return module;
  }
};

TEST_F(InferType, Leaves) {
  EXPECT_EQ(type_text(make_scalar(1)), "float32");
  EXPECT_EQ(type_text(make_constant(NDArray::zeros({2, 3}, DataType::int_(8)))), "Tensor[(2, 3), int8]");
  EXPECT_EQ(type_text(make_var("x", tensor({n, make_int(3)}))), "Tensor[(n, 3), float32]");
  EXPECT_EQ(type_text(make_var("x", make_tuple_type({f32, row(2)}))), "(float32, Tensor[(2), float32])");
  EXPECT_EQ(type_text(make_tuple({})), "()");
  EXPECT_EQ(type_text(make_tuple({make_scalar(1), make_scalar(2, DataType::int_(8))})), "(float32, int8)");
  EXPECT_EQ(type_text(make_tuple_get_item(make_tuple({make_scalar(1), make_scalar(2, DataType::int_(8))}), 1)), "int8");
  EXPECT_EQ(type_text(make_ref_create(make_scalar(1))), "ref(float32)");
  EXPECT_EQ(type_text(make_ref_read(make_ref_create(make_scalar(1)))), "float32");
  EXPECT_EQ(type_text(make_ref_write(make_ref_create(make_scalar(1)), make_scalar(2))), "()");
}

TEST_F(InferType, LeafErrors) {
  EXPECT_THAT(error_text(make_var("x")), HasSubstr("the type of variable '%x' cannot be inferred; annotate it"));
  EXPECT_THAT(error_text(make_var("x", row(-2))), HasSubstr("is -2, which is negative"));
  const auto huge = row(2).cast<TensorTypeNode>();  // as read from JSON, which makes nodes field by field
  huge->shape = {make_int(kMaxDim + 1)};
  EXPECT_THAT(error_text(make_var("x", huge)), HasSubstr("is 140737488355329, more than any machine holds"));
  EXPECT_THROW(make_tensor_type(Shape{kMaxDim + 1}), UserError);
  EXPECT_EQ(type_text(make_var("x", tensor({make_int(2, DataType::int_(32))}))), "Tensor[(2), float32]");
  EXPECT_THAT(error_text(make_var("x", tensor({make_float(2)}))), HasSubstr("has dtype float32, expected int64"));
  EXPECT_THAT(error_text(make_tuple_get_item(make_tuple({make_scalar(1)}), 1)),
              HasSubstr("item 1 is taken of a tuple of 1"));
  EXPECT_THAT(error_text(make_tuple_get_item(make_tuple({make_scalar(1)}), -1)), HasSubstr("item -1"));
  EXPECT_THAT(error_text(make_tuple_get_item(make_scalar(1), 0)), HasSubstr("not a tuple: float32"));
  EXPECT_THAT(error_text(make_ref_read(make_scalar(1))), HasSubstr("a reference is expected, got float32"));
  EXPECT_THAT(error_text(make_ref_write(make_scalar(1), make_scalar(1))), HasSubstr("a reference is expected"));
  EXPECT_THAT(error_text(make_ref_write(make_ref_create(make_scalar(1)), make_scalar(1, DataType::int_(8)))),
              HasSubstr("int8 is written"));
  EXPECT_THAT(error_text(make_tuple({get_op("test.same")})), HasSubstr("an op is not a value"));
  EXPECT_THAT(error_text(make_global_var("f")), HasSubstr("no function '@f'"));
}

// Errors of programs that were not read from a text.
TEST_F(InferType, ErrorsNameTheFunction) {
  const Var x = make_var("x", row(2)), y = make_var("y", row(3)), z = make_var("z", row(3));
  IRModule module = module_with("good", make_function({x}, same(x)));
  module->add_function(make_global_var("bad"), make_function({y}, plus(same(y), make_scalar(1))));
  EXPECT_EQ(error_text(module), "test.plus: types differ\n  at: test.plus\n  in: @bad");
  // Two functions share the node of an error, which is reported for the first; another error is found at the end.
  const Expr shared = plus(z, make_scalar(1));
  module->add_function(make_global_var("one"), make_function({z}, shared));
  module->add_function(make_global_var("two"), make_function({z}, shared));
  const std::string several = error_text(module);
  EXPECT_THAT(several, HasSubstr("2 type errors:"));
  EXPECT_THAT(several, HasSubstr("in: @bad"));
  EXPECT_THAT(several, HasSubstr("in: @one"));
  const Var free = make_var("free");
  EXPECT_EQ(error_text(module_with("open", make_function({free}, make_tuple({})))),
            "the type of variable '%free' cannot be inferred; annotate it\n  in: @open");
}

TEST_F(InferType, OpCalls) {
  const Var x = make_var("x", tensor({n}));
  EXPECT_EQ(type_text(plus(same(x), x)), "Tensor[(n), float32]");
  EXPECT_THAT(error_text(make_call("test.same", {})), HasSubstr("takes 1 argument, got 0"));
  EXPECT_THAT(error_text(make_call("test.bare", {x})), HasSubstr("no type relation"));
  EXPECT_THAT(error_text(plus(x, make_scalar(1))), HasSubstr("types differ"));
  EXPECT_THAT(error_text(same(make_tuple({x}))), HasSubstr("must be a tensor"));
  EXPECT_THAT(error_text(make_call("test.of_shape", {make_var("s", make_tensor_type(Shape{2}, kIndexType))})),
              HasSubstr("do not determine the result"));
  EXPECT_THAT(
      error_text(make_call("test.of_shape", {make_constant(NDArray::from_vector<int64_t>({1}, kIndexType, {-3}))})),
      HasSubstr("negative dimension"));
}

TEST_F(InferType, AllErrorsAtOnceWithPlaces) {
  const Expr a = make_call("test.same", {make_tuple({})}, {}, make_span("m.relay", 3, 5));
  const Expr b = make_call("test.bare", {make_scalar(1)}, {}, make_span("m.relay", 4, 1));
  const std::string text = error_text(make_tuple({plus(a, a), b}));
  EXPECT_EQ(text,
            "2 type errors:\n"
            "  test.same: argument 0 must be a tensor, got ()\n  at: test.same\n  in: m.relay:3:5\n"
            "  the op has no type relation and cannot be inferred; in Python op.add_type_rel gives it one\n  at: "
            "test.bare\n  in: m.relay:4:1");
}

TEST_F(InferType, LetAndIf) {
  const Var x = make_var("x"), y = make_var("y", row(2)), c = make_var("c", boolean);
  EXPECT_EQ(type_text(make_let(x, make_scalar(1), plus(x, x))), "float32");
  EXPECT_EQ(type_text(make_let(y, make_constant(NDArray::zeros({2}, DataType::float_(32))), y)),
            "Tensor[(2), float32]");
  EXPECT_THAT(error_text(make_let(make_var("z", row(3)), make_scalar(1), make_scalar(1))),
              HasSubstr("annotated as Tensor[(3), float32] and bound to float32"));
  const Var d = make_var("d", tensor({make_any()})), e = make_var("e", row(4));
  EXPECT_EQ(type_text(make_if(c, make_scalar(1), make_scalar(2))), "float32");
  EXPECT_EQ(type_text(make_if(c, d, e)), "Tensor[(?), float32]");
  EXPECT_THAT(error_text(make_if(make_scalar(1), make_scalar(1), make_scalar(2))),
              HasSubstr("the condition is float32"));
  EXPECT_THAT(error_text(make_if(c, e, make_scalar(2))),
              HasSubstr("different types: Tensor[(4), float32] and float32"));
  EXPECT_THAT(error_text(make_if(c, make_var("p", tensor({n})), make_var("q", tensor({m})))),
              HasSubstr("different types"));
}

TEST_F(InferType, FunctionsInstantiateSymbols) {
  const Var x = make_var("x", tensor({n, m}));
  const Function f = make_function({x}, same(x));
  EXPECT_EQ(type_text(f), "fn (Tensor[(n, m), float32]) -> Tensor[(n, m), float32]");
  const IRModule module = module_with("f", f);
  const GlobalVar g = module->get_global_var("f");
  const Var four = make_var("y", tensor({make_int(4), n})), any = make_var("z", tensor({make_any(), make_int(2)}));
  EXPECT_EQ(type_text(make_call(g, {four}), module), "Tensor[(4, n), float32]");
  EXPECT_EQ(type_text(make_call(g, {any}), module), "Tensor[(?, 2), float32]");
  EXPECT_EQ(type_text(make_call(make_function({make_var("w", tensor({m}))}, make_scalar(1)), {make_var("v", row(3))})),
            "float32");
  EXPECT_THAT(error_text(make_call(g, {make_scalar(1)}), module), HasSubstr("@f"));
  EXPECT_THAT(error_text(make_call(g, {}), module), HasSubstr("takes 1 argument, got 0"));
  EXPECT_THAT(error_text(make_call(make_scalar(1), {})), HasSubstr("is called, which is not a function"));
  const Var a = make_var("a", tensor({n})), b = make_var("b", tensor({n}));
  const IRModule pair = module_with("g", make_function({a, b}, plus(a, b)));
  const GlobalVar h = pair->get_global_var("g");
  EXPECT_EQ(type_text(make_call(h, {make_var("p", row(3)), make_var("q", row(3))}), pair), "Tensor[(3), float32]");
  EXPECT_THAT(error_text(make_call(h, {make_var("p", row(3)), make_var("q", row(4))}), pair),
              HasSubstr("argument 1 is Tensor[(4), float32], expected Tensor[(3), float32]"));
}

TEST_F(InferType, SymbolsOfEnclosingFunctionsStay) {
  const Var x = make_var("x", tensor({n})), inner = make_var("i", tensor({n}));
  const Var wrong = make_var("w", row(3));
  EXPECT_EQ(type_text(make_function({x}, make_call(make_function({inner}, same(inner)), {x}))),
            "fn (Tensor[(n), float32]) -> Tensor[(n), float32]");
  const Var other = make_var("o", tensor({n}));
  EXPECT_THAT(error_text(make_function({x, wrong}, make_call(make_function({other}, other), {wrong}))),
              HasSubstr("expected Tensor[(n), float32]"));
}

TEST_F(InferType, FunctionErrors) {
  const Var x = make_var("x");
  EXPECT_THAT(error_text(make_function({x}, x)),
              HasSubstr("the type of variable '%x' cannot be inferred; annotate it"));
  const Var y = make_var("y", row(2));
  EXPECT_THAT(error_text(make_function({y}, y, row(3))),
              HasSubstr("annotated to give Tensor[(3), float32] and its body gives Tensor[(2), float32]"));
  const GlobalVar f = make_global_var("f");
  IRModule module = make_module();
  const Var z = make_var("z", row(2));
  module->add_function(f, make_function({z}, make_call(f, {z})));
  EXPECT_THAT(error_text(module), HasSubstr("what '@f' gives cannot be inferred: fn (Tensor[(2), float32]) -> _"));
  IRModule annotated = make_module();
  const Var w = make_var("w", row(2));
  annotated->add_function(f, make_function({w}, make_call(f, {w}), row(2)));
  EXPECT_EQ(error_text(annotated), "typed");
}

TEST_F(InferType, LetBoundRecursion) {
  const Var f = make_var("f"), x = make_var("x", row(2));
  const Function body = make_function({x}, make_call(f, {x}), row(2));
  EXPECT_EQ(type_text(make_let(f, body, f)), "fn (Tensor[(2), float32]) -> Tensor[(2), float32]");
}

TEST_F(InferType, ModuleTypesGlobalsInAnyOrder) {
  IRModule module = make_module();
  const GlobalVar late = make_global_var("late");
  const Var x = make_var("x", row(2)), y = make_var("y", tensor({n}));
  module->add_function(make_global_var("main"), make_function({x}, make_call(late, {x})));
  module->add_function(late, make_function({y}, same(y)));
  const IRModule typed = infer_type(module);
  EXPECT_EQ(typed, module);
  EXPECT_EQ(to_string(module->lookup("main")->checked_type()), "fn (Tensor[(2), float32]) -> Tensor[(2), float32]");
  EXPECT_TRUE(late->has_checked_type());
  EXPECT_TRUE(find_breaches(module, {.types = true}).empty());
}

TEST_F(InferType, MatchAndConstructors) {
  IRModule module = make_module();
  const GlobalTypeVar list = make_global_type_var("List");
  const TypeVar a = make_type_var("A");
  const auto constructor = [&](std::string name, Array<Type> inputs) {
    auto node = make_object<ConstructorNode>();
    node->name_hint = std::move(name);
    node->inputs = std::move(inputs);
    node->belong_to = list;
    return Constructor(node);
  };
  const Constructor nil = constructor("Nil", {}), cons = constructor("Cons", {a, make_type_call(list, {a})});
  auto data = make_object<TypeDataNode>();
  data->header = list;
  data->type_vars = {a};
  data->constructors = {nil, cons};
  module->add_type_def(data);
  const Expr one = make_call(cons, {make_scalar(1), make_call(nil, {})});
  EXPECT_EQ(type_text(one, module), "List[float32]");
  EXPECT_THAT(error_text(make_call(cons, {make_scalar(1), make_scalar(1)}), module),
              HasSubstr("argument 1 is float32, expected List[float32]"));
  const Var head = make_var("h");
  const auto clauses = [&](Pattern first) {
    return Array<Clause>{make_clause(first, head), make_clause(make_pattern_wildcard(), make_scalar(0))};
  };
  EXPECT_EQ(
      type_text(
          make_match(one, clauses(make_pattern_constructor(cons, {make_pattern_var(head), make_pattern_wildcard()}))),
          module),
      "float32");
  // The annotation of a pattern's variable says what the value leaves open.
  const Var open = make_var("o"), typed = make_var("t", make_tensor_type(Shape{2, 2}, DataType::float_(32)));
  const Expr opened =
      make_match(make_call(cons, {open, make_call(nil, {})}),
                 clauses(make_pattern_constructor(cons, {make_pattern_var(typed), make_pattern_wildcard()})));
  EXPECT_EQ(type_text(make_function({open}, make_let(head, make_scalar(1), opened)), module),
            "fn (Tensor[(2, 2), float32]) -> float32");
  const Var bad = make_var("b");
  EXPECT_THAT(
      error_text(
          make_match(one, {make_clause(make_pattern_constructor(cons, {make_pattern_var(bad)}), make_scalar(0))}),
          module),
      HasSubstr("has 2 fields; the pattern names 1"));
  EXPECT_THAT(
      error_text(make_match(make_scalar(1), {make_clause(make_pattern_constructor(nil, {}), make_scalar(0))}), module),
      HasSubstr("float32 is matched against Nil"));
  EXPECT_THAT(error_text(make_match(one, {}), module), HasSubstr("a match needs a clause"));
  EXPECT_THAT(error_text(make_match(make_tuple({}),
                                    {make_clause(make_pattern_tuple({make_pattern_wildcard()}), make_scalar(0))})),
              HasSubstr("a pattern of 1 items does not fit ()"));
  EXPECT_THAT(error_text(make_call(nil, {})), HasSubstr("'List' is not defined"));
}

TEST_F(InferType, ValuesOfShapeArithmetic) {
  const Var x = make_var("x", tensor({n, make_int(3)}));
  const Expr shape = make_call("test.shape", {x});
  const Expr one = make_constant(NDArray::from_vector<int64_t>({2}, kIndexType, {1, 1}));
  EXPECT_EQ(type_text(make_call("test.of_shape", {plus(shape, one)})), "Tensor[(n + 1, 4), float32]");
  const Var v = make_var("v");
  EXPECT_EQ(type_text(make_let(v, shape, make_call("test.of_shape", {v}))), "Tensor[(n, 3), float32]");
  EXPECT_EQ(type_text(make_call("test.of_shape", {make_tuple_get_item(make_tuple({one, shape}), 1)})),
            "Tensor[(n, 3), float32]");
  const TypedModule typed = infer_type_and_values(make_module(make_function({x}, shape)));
  const Expr body = typed.module->lookup("main").cast<FunctionNode>()->body;
  EXPECT_EQ(to_string(typed.values.at(body.get()).at(0)), "n");
}

TEST_F(InferType, TypesAreKeptAndRebuiltOnlyWhereTheyChange) {
  const Var x = make_var("x", row(2));
  const Expr before = infer_type(same(same(x)));
  relation_calls = 0;
  EXPECT_EQ(infer_type(before), before);
  EXPECT_EQ(relation_calls, 0);
  const Var y = make_var("y", row(3));
  y->set_checked_type(row(4));
  const Expr rebuilt = infer_type(same(y));
  EXPECT_EQ(to_string(rebuilt->checked_type()), "Tensor[(3), float32]");
  EXPECT_NE(rebuilt.as<CallNode>()->args[0].get(), static_cast<const ExprNode*>(y.get()));
}

// Runs `work` in several threads that start at once, and returns the results.
std::vector<std::string> in_threads(const std::function<std::string(size_t)>& work) {
  constexpr size_t kThreads = 3;
  std::barrier start(kThreads);
  std::vector<std::string> results(kThreads);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      try {
        results[i] = work(i);
      } catch (const std::exception& error) {
        results[i] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

constexpr int kThreadRounds = 30;

TEST_F(InferType, ThreadsTypeOneProgramAtOnce) {
  for (int round = 0; round < kThreadRounds; ++round) {
    const Var x = make_var("x", row(2));
    Expr chain = x;
    for (int i = 0; i < 100; ++i) chain = plus(same(chain), chain);
    const IRModule module = make_module(make_function({x}, chain));
    const auto found =
        in_threads([&](size_t) { return to_string(infer_type(module)->lookup("main")->checked_type()); });
    EXPECT_THAT(found, ::testing::Each("fn (Tensor[(2), float32]) -> Tensor[(2), float32]"));
    post_order(chain, [](const Expr& e) { EXPECT_TRUE(e->has_checked_type() || e.is<OpNode>()); });
  }
}

// The name of the function that the programs call is one node, and has another type in each.
TEST_F(InferType, ThreadsTypeWhatProgramsShareEachInItsOwnWay) {
  for (int round = 0; round < kThreadRounds; ++round) {
    const GlobalVar shared = make_global_var("f");
    const auto typed = in_threads([&](size_t i) {
      const Type type = row(static_cast<int64_t>(i));
      const Var x = make_var("x", type), y = make_var("y", type);
      const IRModule module = make_module(make_function({y}, make_call(shared, {y})));
      module->add_function(shared, make_function({x}, same(x)));
      const IRModule result = infer_type(module);
      return to_string(result->lookup("main")->checked_type()) + to_string(result->get_global_var("f")->checked_type());
    });
    for (size_t i = 0; i < typed.size(); ++i) {
      const std::string type = fmt::format("fn (Tensor[({0}), float32]) -> Tensor[({0}), float32]", i);
      EXPECT_EQ(typed[i], type + type);
    }
  }
}

// Rebuilds let %s = ...; of_shape(%s) with another bound value alone.
TEST_F(InferType, ACallIsTypedAnewWhenTheValueOfItsArgumentChanges) {
  const auto sizes = [](int64_t a) {
    const NDArray data = NDArray::empty({1}, kIndexType);
    set_element_int(data.tensor(), 0, a);
    return make_constant(data);
  };
  const Var s = make_var("s");
  const Expr typed = infer_type(make_let(s, sizes(2), make_call("test.of_shape", {plus(s, s)})));
  EXPECT_EQ(to_string(typed->checked_type()), "Tensor[(4), float32]");
  const auto* let = typed.as<LetNode>();
  EXPECT_EQ(type_text(make_let(let->var, sizes(3), let->body)), "Tensor[(6), float32]");
  // A constant keeps its type.
  const Expr constant = infer_type(same(sizes(2)));
  relation_calls = 0;
  EXPECT_EQ(infer_type(constant), constant);
  EXPECT_EQ(relation_calls, 0);
}

TEST_F(InferType, LongChainsInLinearTimeAndConstantStack) {
  const int length = kit::by_depth(100000);
  Expr chain = make_var("x", row(2)), lets = make_scalar(0),
       sums = make_call("test.shape", {make_var("s", tensor({n}))});
  const Expr first = sums;
  for (int i = 0; i < length; ++i) chain = same(chain);
  for (int i = 0; i < length; ++i) lets = make_let(make_var("v"), make_scalar(1), lets);
  for (int i = 0; i < length; ++i) sums = plus(sums, first);
  EXPECT_EQ(type_text(chain), "Tensor[(2), float32]");
  EXPECT_EQ(type_text(lets), "float32");
  EXPECT_EQ(type_text(make_call("test.of_shape", {sums})), fmt::format("Tensor[(n * {}), float32]", length + 1));
  EXPECT_TRUE(find_breaches(lets).empty());
  Expr nested = make_scalar(0);
  for (int i = 0; i < length; ++i) nested = make_tuple({nested, nested});
  EXPECT_THAT(error_text(nested), HasSubstr("nests deeper than"));
}

// As JSON may have them; text and builders make none.
TEST_F(InferType, DimensionsWhosePartsDisagree) {
  const auto dim = [](BinaryOp op, const PrimExpr& a, const PrimExpr& b) {
    auto node = make_object<BinaryNode>();
    node->op = op;
    node->dtype = kIndexType;
    node->a = a;
    node->b = b;
    return PrimExpr(node);
  };
  const auto refusal = [](const PrimExpr& dim) {
    const Var x = make_var("x", make_tensor_type(Array<PrimExpr>{dim}));
    return error_text(make_function({x}, x));
  };
  const PrimExpr n = make_prim_var("n");
  EXPECT_THAT(refusal(dim(BinaryOp::add, n, make_int(1, DataType::int_(32)))),
              HasSubstr("dimension 0 of a type has add of int64 and int32"));
  EXPECT_THAT(refusal(dim(BinaryOp::mul, n, dim(BinaryOp::add, n, make_float(1, DataType::float_(32))))),
              HasSubstr("dimension 0 of a type has add of int64 and float32"));
  EXPECT_THAT(refusal(dim(BinaryOp::lt, n, n)), HasSubstr("dimension 0 of a type has lt as int64"));
  EXPECT_THAT(refusal(dim(BinaryOp::add, n, PrimExpr())),
              HasSubstr("dimension 0 of a type has a part that is missing"));
  EXPECT_THAT(refusal(dim(BinaryOp::add, n, make_int(1))), HasSubstr("typed: fn (Tensor[(n + 1), float32])"));
}

TEST_F(InferType, Verify) {
  const Var x = make_var("x", row(2)), y = make_var("y");
  const auto breaches = [](const Function& f) {
    return fmt::format("{}", fmt::join(find_breaches(make_module(BaseFunc(f))), "; "));
  };
  EXPECT_EQ(breaches(make_function({x}, plus(x, x))), "");
  EXPECT_THAT(breaches(make_function({x, x}, x)), HasSubstr("'%x' is bound twice"));
  EXPECT_THAT(breaches(make_function({}, make_let(y, make_scalar(1), make_let(y, make_scalar(2), y)))),
              HasSubstr("'%y' is bound twice"));
  const IRModule two = make_module(BaseFunc(make_function({x}, plus(x, x))));
  two->add_function(make_global_var("g"), make_function({x}, x));
  EXPECT_TRUE(find_breaches(two).empty()) << "each has its own %x";
  // In its own value, which is not a function; free here and bound later.
  EXPECT_THAT(breaches(make_function({x}, make_let(y, plus(y, x), y))), HasSubstr("'%y' is used outside its scope"));
  EXPECT_THAT(find_breaches(Expr(make_tuple({y, make_let(y, x, y)}))),
              testing::ElementsAre(HasSubstr("'%y' is used outside its scope")));
  EXPECT_THAT(breaches(make_function({x}, y)), HasSubstr("'%y' is used outside its scope"));
  EXPECT_THAT(breaches(make_function({}, make_tuple({make_let(y, make_scalar(1), y), y}))),
              HasSubstr("'%y' is used outside its scope"));
  EXPECT_THAT(breaches(make_function({}, make_tuple_get_item(make_tuple({}), 0))),
              HasSubstr("item 0 is taken of a tuple of 0"));
  EXPECT_THAT(breaches(make_function({}, make_call(make_global_var("g"), {}))), HasSubstr("no function '@g'"));
  EXPECT_THAT(breaches(make_function({}, make_tuple({Expr()}))), HasSubstr("null child"));
  EXPECT_FALSE(find_breaches(same(make_scalar(1)), {.types = true}).empty());
  EXPECT_THROW(verify(make_module(BaseFunc(make_function({}, y)))), UserError);
}

}  // namespace
}  // namespace headrace::relay
