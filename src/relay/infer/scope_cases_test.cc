// Types of polymorphic functions, of functions where others are expected, and of names that get out of their function.
#include "relay/infer/tests/cases.h"

namespace headrace::relay {
namespace {

constexpr InferCase kTypedScope[] = {
    // a function given where one is expected
    {"def @main(%f: fn [A](A) -> A) { (%f(1), %f(2f)) }", "fn (fn [A](A) -> A) -> (int32, float32)"},
    {"def @main() { @use(@id) }\ndef @use(%f: fn [A](A) -> A) { %f(1) }\ndef @id[B](%x: B) -> B { %x }",
     "fn () -> int32"},
    {"def @main() { @use(@first) }\ndef @use(%f: fn [A](A, A) -> A) { %f(1, 2) }\n"
     "def @first[B, C](%x: B, %y: C) -> B { %x }",
     "fn () -> int32"},
    {"def @main() { @use(@id) }\ndef @use(%f: fn (int32) -> int32) { %f(1) }\ndef @id[B](%x: B) -> B { %x }",
     "fn () -> int32"},
    {"def @main() { let %f: fn (float32) -> float32 = @id; %f(1f) }\ndef @id[B](%x: B) -> B { %x }",
     "fn () -> float32"},
    {"def @main() { @use(@relu) }\ndef @use(%f: fn (Tensor[(3), float32]) -> Tensor[(3), float32]) { 1 }\n"
     "def @relu(%x: Tensor[(n), float32]) { nn.relu(%x) }",
     "fn () -> int32"},
    {"def @main() { @use(@any) }\ndef @use(%f: fn (Tensor[(3), float32]) -> Tensor[(?), float32]) { 1 }\n"
     "def @any(%x: Tensor[(?), float32]) { nn.relu(%x) }",
     "fn () -> int32"},
    {"def @main(%x: Tensor[(4), float32]) { @apply(@relu, %x) }\n"
     "def @apply(%f: fn (Tensor[(n), float32]) -> Tensor[(n), float32], %x: Tensor[(n), float32]) { %f(%x) }\n"
     "def @relu(%x: Tensor[(k), float32]) { nn.relu(%x) }",
     "fn (Tensor[(4), float32]) -> Tensor[(4), float32]"},
    {"def @main() { @take(@give) }\n"
     "def @take(%f: fn (fn (int32) -> int32) -> int32) { 1 }\n"
     "def @give(%g: fn (int32) -> int32) -> int32 { %g(2) }",
     "fn () -> int32"},
    // a function that takes any function is accepted where one that takes a polymorphic function is expected
    {"def @main() { @take(@give) }\ndef @take(%f: fn (fn [A](A) -> A) -> int32) { 1 }\n"
     "def @give(%g: fn (int32) -> int32) -> int32 { %g(2) }",
     "fn () -> int32"},
    {"def @main(%c: bool) { (if (%c) { @id } else { fn (%x: int32) { %x } })(3) }\ndef @id[A](%x: A) -> A { %x }",
     "fn (bool) -> int32"},
    {"def @main(%c: bool) { (if (%c) { fn (%x: int32) { %x } } else { @id })(3) }\ndef @id[A](%x: A) -> A { %x }",
     "fn (bool) -> int32"},
    {"def @main(%o: Option[int32]) { (match (%o) { Some(_) => { @id }, None => { fn (%x: int32) { %x } } })(3) }\n"
     "def @id[A](%x: A) -> A { %x }",
     "fn (Option[int32]) -> int32"},
    // names of an outer function inside inner ones
    {"def @main(%x: Tensor[(n), float32]) { fn (%y: Tensor[(n), float32]) { add(%x, %y) } }",
     "fn (Tensor[(n), float32]) -> fn (Tensor[(n), float32]) -> Tensor[(n), float32]"},
    {"def @main(%x: int32) { @const(%x)(2f) }\ndef @const[A, B](%x: A) -> fn (B) -> A { fn (%y: B) { %x } }",
     "fn (int32) -> int32"},
    {"def @main[A](%x: A) -> (A, A) { let %r = ref(%x); (ref_read(%r), %x) }", "fn [A](A) -> (A, A)"},
    {"def @main[A](%x: A) { let %f = fn () { %x }; %f() }", "fn [A](A) -> A"},
    {"def @main[A](%x: A, %l: List[A]) -> List[A] { Cons(%x, %l) }", "fn [A](A, List[A]) -> List[A]"},
    {"def @main() { let %f: fn (Tensor[(n), float32]) -> Tensor[(n), float32] = fn (%x) { negative(%x) }; 1 }",
     "fn () -> int32"},
    {"def @main() { let %k = fn [A, B](%x: A, %y: B) { (%y, %x) }; (%k(1, 2f), %k(True, 1)) }",
     "fn () -> ((float32, int32), (int32, bool))"},
    // type arguments
    {"def @main(%x: int32) { @id[int32](%x) }\ndef @id[A](%x: A) -> A { %x }", "fn (int32) -> int32"},
    {"def @main() { @none[float32]() }\ndef @none[A]() -> Option[A] { None }", "fn () -> Option[float32]"},
    // dimensions that a signature computes
    {"def @main(%x: Tensor[(5), float32]) { @tail(%x) }\n"
     "def @tail(%x: Tensor[(n), float32]) -> Tensor[(n - 1), float32] { @tail(%x) }",
     "fn (Tensor[(5), float32]) -> Tensor[(4), float32]"},
    {"def @main(%x: Tensor[(5), float32], %y: Tensor[(?), float32]) { (@twice(%x), @twice(%y)) }\n"
     "def @twice(%x: Tensor[(n), float32]) { concatenate((%x, %x)) }",
     "fn (Tensor[(5), float32], Tensor[(?), float32]) -> (Tensor[(10), float32], Tensor[(?), float32])"},
};

constexpr InferCase kRefusedScope[] = {
    // less general than expected
    {"def @main() { @use(@inc) }\ndef @use(%f: fn [A](A) -> A) { %f(1) }\n"
     "def @inc(%x: int32) -> int32 { add(%x, 1) }",
     "argument 0 is fn (int32) -> int32, expected fn [A](A) -> A"},
    {"def @main() { @use(fn (%x: float32) { %x }) }\ndef @use(%f: fn [A](A) -> A) { %f(1) }",
     "expected fn [A](A) -> A"},
    {"def @main() { @use(@same) }\ndef @use(%f: fn [A, B](A, B) -> A) { %f(1, 2f) }\n"
     "def @same[C](%x: C, %y: C) -> C { %x }",
     "argument 0 is fn [C](C, C) -> C, expected fn [A, B](A, B) -> A"},
    {"def @main() { @use(@three) }\n"
     "def @use(%x: int32, %f: fn (Tensor[(n), float32]) -> Tensor[(n), float32]) { %x }\n"
     "def @three(%x: Tensor[(3), float32]) { %x }",
     "takes 2 arguments, got 1"},
    {"def @main() { let %f: fn (Tensor[(n), float32]) -> Tensor[(n), float32] = @three; 1 }\n"
     "def @three(%x: Tensor[(3), float32]) -> Tensor[(3), float32] { %x }",
     "variable '%f' is annotated as fn (Tensor[(n), float32]) -> Tensor[(n), float32] and bound to"},
    {"def @main() { @take(@give) }\ndef @take(%f: fn (fn (int32) -> int32) -> int32) { 1 }\n"
     "def @give(%g: fn [A](A) -> A) -> int32 { %g(2) }",
     "argument 0 is fn (fn [A](A) -> A) -> int32, expected fn (fn (int32) -> int32) -> int32"},
    {"def @main() { @use(@two) }\ndef @use(%f: fn (int32) -> int32) { 1 }\ndef @two(%x: int32, %y: int32) { %x }",
     "expected fn (int32) -> int32"},
    {"def @main() { @use(@f) }\ndef @use(%f: fn (int32) -> int32) { 1 }\ndef @f(%x: int32) { 1f }",
     "expected fn (int32) -> int32"},
    {"def @main(%c: bool) { if (%c) { fn (%x: int32) { %x } } else { fn (%x: float32) { %x } } }",
     "the branches have different types: fn (int32) -> int32 and fn (float32) -> float32"},
    // names that get out
    {"def @main() { let %r = ref(Nil); let %f = fn [A](%x: A) { ref_write(%r, Cons(%x, Nil)) }; 1 }",
     "the type parameter A"},
    {"def @main() { let %r = ref(None); let %f = fn (%x: Tensor[(n), float32]) { ref_write(%r, Some(%x)) }; "
     "let %u = %f(full(0f, shape=[3])); ref_read(%r) }",
     "the dimension n"},
    {"def @main(%y) { let %f = fn [A](%x: A, %c: bool) { if (%c) { %x } else { %y } }; 1 }", "the type parameter A"},
    {"def @main(%x: int32) -> Tensor[(n), float32] { @main(%x) }",
     "the dimension n in fn (int32) -> Tensor[(n), float32] is bound by no function around it"},
    {"def @main() { @f() }\ndef @f() -> Tensor[(k, 2), float32] { @f() }", "the dimension k"},
    {"def @main(%f: fn () -> Tensor[(k), float32]) { 1 }\ndef @g() -> fn () -> Tensor[(j), float32] { @g() }",
     "the dimension j"},
    // dimensions that are none at a call
    {"def @main(%x: Tensor[(3), float32]) { @f(%x) }\n"
     "def @f(%x: Tensor[(n), float32]) -> Tensor[(n - 5), float32] { @f(%x) }",
     "the result would be Tensor[(-2), float32], whose dimension 0 is not a size"},
    {"def @main(%x: Tensor[(0), float32]) { @f(%x) }\n"
     "def @f(%x: Tensor[(n), float32]) -> Tensor[(floordiv(6, n)), float32] { @f(%x) }",
     "whose dimension 0 is not a size"},
    {"def @main(%x: Tensor[(3), float32]) { @f(%x).1 }\n"
     "def @f(%x: Tensor[(n), float32]) -> (int32, Tensor[(2, n - 5), float32]) { @f(%x) }",
     "whose dimension 1 is not a size"},
    // type arguments
    {"def @main(%x: int32) { @id[float32](%x) }\ndef @id[A](%x: A) -> A { %x }",
     "argument 0 is int32, expected float32"},
    {"def @main(%x: int32) { @id[int32, int32](%x) }\ndef @id[A](%x: A) -> A { %x }",
     "it takes 1 type argument, got 2"},
    {"def @main(%x: int32) { @id[List](%x) }\ndef @id[A](%x: A) -> A { %x }", "List is a adt_handle, expected a type"},
    // recursion at another type than its own, without an annotation
    {"def @main() { let %f = fn (%x) { let %a = %f(1); %f(2f) }; 1 }", "argument 0 is float32, expected int32"},
    {"def @main(%x: int32) { @f(%x) }\ndef @f(%x) { @f((%x, %x)) }", "@f"},
};

TEST(ScopeCases, Typed) {
  for (const InferCase& c : kTypedScope) expect_typed(c);
}

TEST(ScopeCases, Refused) {
  for (const InferCase& c : kRefusedScope) expect_refused(c);
}

// The symbols of free variables stand for themselves everywhere.
TEST(ScopeCases, FreeVariablesBindTheirNames) {
  ops::register_all_ops();
  const PrimVar n = make_prim_var("n");
  const Var x = make_var("x", make_tensor_type(Array<PrimExpr>{n}, DataType::float_(32)));
  const Expr pair = make_tuple({make_call("nn.relu", {x}), x});
  EXPECT_EQ(to_string(infer_type(pair)->checked_type()), "(Tensor[(n), float32], Tensor[(n), float32])");
}

}  // namespace
}  // namespace headrace::relay
