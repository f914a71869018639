// Constraints of functions' types: asked as the op's relation is, at calls and where functions are given away.
#include "kit/errors.h"
#include "relay/infer/check_kind.h"
#include "relay/infer/tests/cases.h"
#include "relay/op_keys.h"

namespace headrace::relay {
namespace {

constexpr InferCase kHold[] = {
    // the op determines the result
    {"def @main(%f: fn [A, B](A) -> B where [nn.relu(A) -> B], %x: Tensor[(2, 3), float32]) { %f(%x) }",
     "fn (fn [A, B](A) -> B where [nn.relu(A) -> B], Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32]"},
    {"def @main(%f: fn [A, B, C](A, B) -> C where [add(A, B) -> C], %x: Tensor[(2, 1), float32], "
     "%y: Tensor[(3), float32]) { %f(%x, %y) }",
     "fn (fn [A, B, C](A, B) -> C where [add(A, B) -> C], Tensor[(2, 1), float32], Tensor[(3), float32]) -> "
     "Tensor[(2, 3), float32]"},
    {"def @main(%f: fn [A, B](A) -> B where [nn.dense(A, Tensor[(4, 3), float32]) -> B], %x: Tensor[(2, 3), float32]) "
     "{ %f(%x) }",
     "fn (fn [A, B](A) -> B where [nn.dense(A, Tensor[(4, 3), float32], ...) -> B], Tensor[(2, 3), float32]) -> "
     "Tensor[(2, 4), float32]"},
    {"def @main(%f: fn [A, B](A) -> B where [transpose(A, axes=[1, 0]) -> B], %x: Tensor[(2, 3), float32]) { %f(%x) }",
     "fn (fn [A, B](A) -> B where [transpose(A, ...) -> B], Tensor[(2, 3), float32]) -> "
     "Tensor[(3, 2), float32]"},
    {"def @main(%f: fn [A, B](A) -> (B, A) where [nn.relu(A) -> B], %x: Tensor[(2), float32]) { %f(%x).0 }",
     "fn (fn [A, B](A) -> (B, A) where [nn.relu(A) -> B], Tensor[(2), float32]) -> Tensor[(2), float32]"},
    // one constraint determines a type that the next needs, in either order
    {"def @main(%f: fn [A, B, C](A) -> C where [transpose(B) -> C, transpose(A) -> B], %x: Tensor[(2, 3), int8]) "
     "{ %f(%x) }",
     "fn (fn [A, B, C](A) -> C where [transpose(B, ...) -> C, transpose(A, ...) -> B], Tensor[(2, 3), int8]) -> "
     "Tensor[(2, 3), int8]"},
    // each call has its own
    {"def @main(%f: fn [A, B](A) -> B where [transpose(A) -> B], %x: Tensor[(2, 3), int8]) { (%f(%x), %f(%f(%x))) }",
     "fn (fn [A, B](A) -> B where [transpose(A, ...) -> B], Tensor[(2, 3), int8]) -> "
     "(Tensor[(3, 2), int8], Tensor[(2, 3), int8])"},
    // symbols and unknown dimensions
    {"def @main(%f: fn [A](Tensor[(m, k), float32]) -> A where [transpose(Tensor[(m, k), float32]) -> A], "
     "%x: Tensor[(m, k), float32]) { %f(%x) }",
     "fn (fn [A](Tensor[(m, k), float32]) -> A where [transpose(Tensor[(m, k), float32], ...) -> A], "
     "Tensor[(m, k), float32]) -> Tensor[(k, m), float32]"},
    {"def @main(%f: fn [A, B](A) -> B where [nn.relu(A) -> B], %x: Tensor[(?), float32]) { %f(%x) }",
     "fn (fn [A, B](A) -> B where [nn.relu(A) -> B], Tensor[(?), float32]) -> Tensor[(?), float32]"},
    // no type parameter
    {"def @main(%f: fn (float32) -> float32 where [nn.relu(float32) -> float32]) { %f(1f) }",
     "fn (fn (float32) -> float32 where [nn.relu(float32) -> float32]) -> float32"},
    // an argument that is known only later
    {"def @main(%f: fn [A, B](A) -> B where [transpose(A) -> B], %x) { let %y = %f(%x); @take(%x, %y) }\n"
     "def @take(%a: Tensor[(2, 3), int8], %b) { %b }",
     "fn (fn [A, B](A) -> B where [transpose(A, ...) -> B], Tensor[(2, 3), int8]) -> Tensor[(3, 2), int8]"},
    // given to a parameter that grants the same constraint, to one with concrete types for which it holds, through a
    // let
    {"def @main(%f: fn [A](A) -> A where [nn.relu(A) -> A]) { @keep(%f) }\n"
     "def @keep(%g: fn [B](B) -> B where [nn.relu(B) -> B]) { 1 }",
     "fn (fn [A](A) -> A where [nn.relu(A) -> A]) -> int32"},
    {"def @main(%f: fn [A](A) -> A where [nn.relu(A) -> A], %x: float32) { @apply(%f, %x) }\n"
     "def @apply(%g: fn (float32) -> float32, %x: float32) { %g(%x) }",
     "fn (fn [A](A) -> A where [nn.relu(A) -> A], float32) -> float32"},
    {"def @main(%f: fn [A, B](A) -> B where [transpose(A) -> B], %x: Tensor[(2, 3), int8]) { let %g = %f; %g(%x) }",
     "fn (fn [A, B](A) -> B where [transpose(A, ...) -> B], Tensor[(2, 3), int8]) -> Tensor[(3, 2), int8]"},
    {"def @main(%x: float32) { @apply(fn [A](%y: A) -> A { %y }, %x) }\n"
     "def @apply(%g: fn [A](A) -> A where [nn.relu(A) -> A], %x: float32) { %g(%x) }",
     "fn (float32) -> float32"},
};

constexpr InferCase kRefusedConstraints[] = {
    // the op refuses the arguments, or gives something else
    {"def @main(%f: fn [A, B](A, B) -> A where [add(A, B) -> A], %x: Tensor[(2), float32], %y: Tensor[(3), float32]) "
     "{ %f(%x, %y) }",
     "the constraint add(A, B) -> A of a function's type, here add(Tensor[(2), float32], Tensor[(3), float32]) -> "
     "Tensor[(2), float32], does not hold: add: "},
    {"def @main(%f: fn [A](A) -> A where [transpose(A) -> A], %x: Tensor[(2, 3), int8]) { %f(%x) }",
     "the constraint transpose(A, ...) -> A of a function's type, here transpose(Tensor[(2, 3), int8], ...) -> "
     "Tensor[(2, 3), int8], does not hold: the op gives Tensor[(3, 2), int8]"},
    {"def @main(%f: fn (float32) -> int32 where [nn.relu(float32) -> int32]) { %f(1f) }",
     "the constraint nn.relu(float32) -> int32 of a function's type does not hold: the op gives float32"},
    {"def @main(%f: fn [A](A) -> A where [nn.relu(A) -> A], %x: (int32, int32)) { %f(%x) }",
     "does not hold: nn.relu: argument 0 must be a tensor, got (int32, int32)"},
    {"def @main(%f: fn [A](A) -> A where [nn.softmax(A, attrs=None) -> A], %x: float32) { %f(%x) }",
     "does not hold: the call has no attributes, and the op needs relay.attrs.SoftmaxAttrs"},
    // for all types is more than the op says
    {"def @main[T](%f: fn [A](A) -> A where [nn.relu(A) -> A], %x: T) { %f(%x) }",
     "does not hold: nn.relu: argument 0 must be a tensor, got T"},
    {"def @main(%f: fn [A](A) -> A where [nn.relu(A) -> A]) { @keep(%f) }\ndef @keep(%g: fn [B](B) -> B) { 1 }",
     "does not hold: nn.relu: argument 0 must be a tensor, got B"},
    {"def @main(%f: fn [A](A) -> A where [nn.relu(A) -> A]) { @keep(%f) }\n"
     "def @keep(%g: fn [B](B) -> B where [nn.softmax(B) -> B]) { 1 }",
     "the constraint nn.relu(A) -> A of a function's type"},
    // nothing determines a type
    {"def @main(%f: fn [A, B](A) -> A where [add(A, B) -> A]) { %f(1f) }",
     "the constraint add(A, B) -> A of a function's type, here add(float32, _) -> float32, is not solved: the argument "
     "types do not determine the result"},
    // a constraint that cannot be evaluated
    {"def @main[C: constraint](%f: fn (int32) -> int32 where [C]) { 1 }", "expected '(' after the op of a constraint"},
    {"def @main(%f: fn [A](A) -> A where [add(A) -> A]) { 1 }",
     "the constraint add(A) -> A must have 2 inputs, as the op has"},
    {"def @main(%f: fn [A](A) -> A where [test.no_relation(A) -> A]) { 1 }",
     "the constraint test.no_relation(A) -> A cannot be asked: the op has no type relation"},
    {"def @main(%f: fn [A](A) -> A where [nn.relu(List) -> A]) { 1 }",
     "what a constraint relates must be a type, and List is a adt_handle"},
};

// An op of a user: it pairs.
void register_constraint_ops() {
  static const bool once = [] {
    ops::register_all_ops();
    register_op("test.no_relation");
    register_op("test.pair")->set(kTypeRelation, TypeRelationFn([](const RelationInput& input) -> Type {
                                    if (input.arg_types[0].is<IncompleteTypeNode>()) return {};
                                    return make_tuple_type({input.arg_types[0], input.arg_types[0]});
                                  }));
    return true;
  }();
  static_cast<void>(once);
}

TEST(ConstraintCases, Hold) {
  register_constraint_ops();
  for (const InferCase& c : kHold) expect_typed(c);
}

TEST(ConstraintCases, Refused) {
  register_constraint_ops();
  for (const InferCase& c : kRefusedConstraints) expect_refused(c);
}

TEST(ConstraintCases, AnOpOfAUserIsAsked) {
  register_constraint_ops();
  expect_typed({"def @main(%f: fn [A, B](A) -> B where [test.pair(A) -> B], %x: int8) { %f(%f(%x)).1 }",
                "fn (fn [A, B](A) -> B where [test.pair(A) -> B], int8) -> (int8, int8)"});
  expect_refused({"def @main(%f: fn [A](A) -> A where [test.pair(A) -> A], %x: int8) { %f(%x) }",
                  "does not hold: the op gives (int8, int8)"});
  // It would need a type that contains itself.
  expect_refused({"def @main(%f: fn [A](A) -> A where [test.pair(A) -> A], %x) { %f(%x) }",
                  "is not solved: the argument types do not determine the result"});
}

TEST(ConstraintCases, OneErrorForEachCall) {
  register_constraint_ops();
  const std::string error = type_of_main(
      "def @main(%f: fn [A](A) -> A where [transpose(A) -> A], %x: Tensor[(2, 3), int8]) { (%f(%x), %f(%x)) }");
  EXPECT_EQ(error.substr(0, 22), "error: 2 type errors:\n") << error;
}

Type relation(std::string name, Array<Type> args, int64_t num_inputs, ObjectRef attrs = {}) {
  auto node = make_object<TypeRelationNode>();
  node->name = std::move(name);
  node->args = std::move(args);
  node->num_inputs = num_inputs;
  node->attrs = std::move(attrs);
  return node;
}

TEST(ConstraintCases, ConstraintsWithoutTextAreRefused) {
  register_constraint_ops();
  const TypeVar a = make_type_var("A"), c = make_type_var("C", TypeKind::constraint);
  const std::pair<Type, std::string> cases[] = {
      {relation("Broadcast", {a, a, a}, 2),
       "the constraint Broadcast(A, A) -> A names no op, and only the relations of ops can be asked"},
      {relation("add", {a, a, a}, 1),
       "the constraint add(...) must have one result; it relates 3 types and has 1 inputs"},
      {relation("add", {}, -1), "the constraint add(...) must have one result; it relates 0 types and has -1 inputs"},
      {relation("nn.relu", {a, a}, 1, a),
       "the attributes of the constraint nn.relu(A, ...) -> A are a "
       "relay.TypeVar"},
      {relation("nn.relu", {Type(), a}, 1), "a part of a type is missing"},
      {c, "a constraint of a function must be the relation of an op; C is none"},
      {a, "a constraint of a function must be a constraint, and A is a type"},
  };
  for (const auto& [constraint, error] : cases) {
    const Type function = make_func_type({a}, a, {a}, {constraint});
    EXPECT_EQ(kit::user_error_of([&] { check_kind(function, make_module()); }), error);
    const Expr call = make_call(make_var("f", function), {make_var("x", make_scalar_type(DataType::int_(8)))});
    EXPECT_NE(kit::user_error_of([&] { infer_type(call, make_module()); }), "");
  }
}

// An op may return a function of a type that was not checked.
TEST(ConstraintCases, APartThatIsMissingIsTold) {
  register_constraint_ops();
  const Type hollow = relation("nn.relu", {make_ref_type({}), make_scalar_type(DataType::int_(8))}, 1);
  EXPECT_EQ(relation_fault(*hollow.as<TypeRelationNode>()),
            "the constraint nn.relu(ref(<unknown>)) -> int8 has a part that is missing");
}

}  // namespace
}  // namespace headrace::relay
