// Tests types of programs: functions, data types, matches, references, symbols. Ops are in op_cases_test.cc;
// polymorphic functions and names that escape their function are in scope_cases_test.cc.
#include "relay/infer/tests/cases.h"

namespace headrace::relay {
namespace {

constexpr InferCase kTyped[] = {
    // leaves
    {"def @main() { 1f }", "fn () -> float32"},
    {"def @main() { 1 }", "fn () -> int32"},
    {"def @main() { True }", "fn () -> bool"},
    {"def @main() { () }", "fn () -> ()"},
    {"def @main() { (1, 2f) }", "fn () -> (int32, float32)"},
    {"def @main() { (1, (2f, 3i64)) }", "fn () -> (int32, (float32, int64))"},
    {"def @main() { (1, 2f).1 }", "fn () -> float32"},
    {"def @main(%x: Tensor[(2, 3), float16]) { %x }", "fn (Tensor[(2, 3), float16]) -> Tensor[(2, 3), float16]"},
    {"def @main(%x: Tensor[(n, ?), int8]) { %x }", "fn (Tensor[(n, ?), int8]) -> Tensor[(n, ?), int8]"},
    {"def @main(%x: (int32, float32)) { %x.0 }", "fn ((int32, float32)) -> int32"},
    // parameters without annotation
    {"def @main(%x, %c: bool) { if (%c) { %x } else { 1f } }", "fn (float32, bool) -> float32"},
    {"def @main(%x, %c) { if (%c) { %x } else { 1f } }", "fn (float32, bool) -> float32"},
    {"def @main(%x) { let %y = (%x, 1); @take(%y) }\ndef @take(%p: (float32, int32)) { %p.0 }",
     "fn (float32) -> float32"},
    {"def @main(%f, %x: int32) -> float32 { %f(%x) }", "fn (fn (int32) -> float32, int32) -> float32"},
    {"def @main(%x) -> float32 { %x }", "fn (float32) -> float32"},
    {"def @main(%x) -> (float32, int32) { %x }", "fn ((float32, int32)) -> (float32, int32)"},
    {"def @main(%x: float32) { let %f = fn (%y) { %y }; %f(%x) }", "fn (float32) -> float32"},
    {"def @main(%x: _) { let %y: int32 = %x; %y }", "fn (int32) -> int32"},
    {"def @main(%x: (_, float32), %c: bool) { if (%c) { %x } else { (1, 2f) } }",
     "fn ((int32, float32), bool) -> (int32, float32)"},
    {"def @main(%r, %x: float32) { let %u = ref_write(%r, %x); ref_read(%r) }",
     "fn (ref(float32), float32) -> float32"},
    {"def @main(%r) -> int32 { ref_read(%r) }", "fn (ref(int32)) -> int32"},
    {"def @main(%x, %y: Tensor[(3), float32]) { let %z = fn (%a: Tensor[(3), float32]) { %a }(%x); add(%z, %y) }",
     "fn (Tensor[(3), float32], Tensor[(3), float32]) -> Tensor[(3), float32]"},
    // an op that waits for its argument
    {"def @main(%x) { let %y = nn.relu(%x); @take(%x, %y) }\n"
     "def @take(%a: Tensor[(2), float32], %b: Tensor[(2), float32]) { %b }",
     "fn (Tensor[(2), float32]) -> Tensor[(2), float32]"},
    {"def @main(%x) { let %y = (nn.relu(%x), 1); let %z = nn.relu(%y.0); @take(%x, %z) }\n"
     "def @take(%a: Tensor[(2), float32], %b) { %b }",
     "fn (Tensor[(2), float32]) -> Tensor[(2), float32]"},
    {"def @main(%t) { let %i = nn.relu(%t.1); @take(%t, %i) }\n"
     "def @take(%t: (int32, Tensor[(4), float32]), %i) { %i }",
     "fn ((int32, Tensor[(4), float32])) -> Tensor[(4), float32]"},
    // operands whose type the op determines
    {"def @main(%x: Tensor[(1, 3, 8, 8), float32], %w) { nn.conv2d(%x, %w, channels=16, kernel_size=[3, 3], "
     "padding=[1, 1, 1, 1]) }",
     "fn (Tensor[(1, 3, 8, 8), float32], Tensor[(16, 3, 3, 3), float32]) -> Tensor[(1, 16, 8, 8), float32]"},
    {"def @main(%x: Tensor[(1, 8, 8, 4), float32], %w) { nn.conv2d(%x, %w, channels=8, kernel_size=[1, 1], groups=2, "
     "data_layout=\"NHWC\", kernel_layout=\"HWIO\") }",
     "fn (Tensor[(1, 8, 8, 4), float32], Tensor[(1, 1, 2, 8), float32]) -> Tensor[(1, 8, 8, 8), float32]"},
    {"def @main(%x: Tensor[(1, 4, 5, 5), float32], %w) { nn.conv2d_transpose(%x, %w, channels=6, kernel_size=[2, 2]) }",
     "fn (Tensor[(1, 4, 5, 5), float32], Tensor[(4, 6, 2, 2), float32]) -> Tensor[(1, 6, 6, 6), float32]"},
    {"def @main(%x: Tensor[(2, 7), float32], %w, %b) { nn.bias_add(nn.dense(%x, %w, units=5), %b) }",
     "fn (Tensor[(2, 7), float32], Tensor[(5, 7), float32], Tensor[(5), float32]) -> Tensor[(2, 5), float32]"},
    {"def @main(%x: Tensor[(2, 3, 4, 4), float32], %g, %b, %m, %v) { nn.batch_norm(%x, %g, %b, %m, %v).0 }",
     "fn (Tensor[(2, 3, 4, 4), float32], Tensor[(3), float32], Tensor[(3), float32], Tensor[(3), float32], "
     "Tensor[(3), float32]) -> Tensor[(2, 3, 4, 4), float32]"},
    {"def @main(%x: Tensor[(2, 3), float16], %g, %b) { nn.layer_norm(%x, %g, %b) }",
     "fn (Tensor[(2, 3), float16], Tensor[(3), float16], Tensor[(3), float16]) -> Tensor[(2, 3), float16]"},
    {"def @main(%x: Tensor[(2, c, 4, 4), float32], %a) { nn.prelu(%x, %a) }",
     "fn (Tensor[(2, c, 4, 4), float32], Tensor[(c), float32]) -> Tensor[(2, c, 4, 4), float32]"},
    {"def @main(%x: Tensor[(1, ?, 8, 8), float32], %w) {\n"
     "  let %y = nn.conv2d(%x, %w, channels=16, kernel_size=[3, 3]); let %z: Tensor[(16, 3, 3, 3), float32] = %w; %y }",
     "fn (Tensor[(1, ?, 8, 8), float32], Tensor[(16, 3, 3, 3), float32]) -> Tensor[(1, 16, 6, 6), float32]"},
    {"def @main(%x, %z: Tensor[(6), float32]) { let %y = nn.relu(%x); let %s = shape_of(%y); @take(%x, reshape(%z, "
     "%s)) }\n"
     "def @take(%a: Tensor[(2, 3), float32], %b) { %b }",
     "fn (Tensor[(2, 3), float32], Tensor[(6), float32]) -> Tensor[(2, 3), float32]"},
    {"def @main(%x: Tensor[(5), float32]) { @make(%x) }\n"
     "def @make(%x: Tensor[(n), float32]) { fn (%y: Tensor[(k), float32]) { (%x, %y) } }",
     "fn (Tensor[(5), float32]) -> fn (Tensor[(k), float32]) -> (Tensor[(5), float32], Tensor[(k), float32])"},
    // let, if
    {"def @main(%x: int32) { let %y = %x; let %z = (%y, %y); %z }", "fn (int32) -> (int32, int32)"},
    {"def @main(%c: bool, %x: Tensor[(?), float32], %y: Tensor[(4), float32]) { if (%c) { %x } else { %y } }",
     "fn (bool, Tensor[(?), float32], Tensor[(4), float32]) -> Tensor[(?), float32]"},
    {"def @main(%c: bool) { if (%c) { Nil } else { Cons(1, Nil) } }", "fn (bool) -> List[int32]"},
    {"def @main(%c: bool) { if (%c) { None } else { Some((1, 2f)) } }", "fn (bool) -> Option[(int32, float32)]"},
    // recursion without an annotation
    {"def @main(%n: int32) { if (less(%n, 1)) { 0 } else { @main(subtract(%n, 1)) } }", "fn (int32) -> int32"},
    {"def @main(%n: int32) { @even(%n) }\n"
     "def @even(%n: int32) { if (equal(%n, 0)) { True } else { @odd(subtract(%n, 1)) } }\n"
     "def @odd(%n: int32) { if (equal(%n, 0)) { False } else { @even(subtract(%n, 1)) } }",
     "fn (int32) -> bool"},
    {"def @main(%n: int32) { let %loop = fn (%i: int32) { if (less(%i, 9)) { %loop(add(%i, 1)) } else { %i } }; "
     "%loop(%n) }",
     "fn (int32) -> int32"},
    {"def @main(%l: List[int32]) { @sum(%l) }\n"
     "def @sum(%l: List[int32]) { match (%l) { Cons(%h, %t) => { add(%h, @sum(%t)) }, Nil => { 0 } } }",
     "fn (List[int32]) -> int32"},
    {"def @main(%l) { match (%l) { Cons(%h, %t) => { @pick(%h, @main(%t)) }, Nil => { 0 } } }\n"
     "def @pick(%a: int32, %b: int32) { add(%a, %b) }",
     "fn (List[int32]) -> int32"},
    // polymorphism
    {"def @main(%x: int32) { @id(%x) }\ndef @id[A](%x: A) -> A { %x }", "fn (int32) -> int32"},
    {"def @main(%x: int32) { @id(%x) }\ndef @id[A](%x: A) { %x }", "fn (int32) -> int32"},
    {"def @main(%x: int32, %y: float32) { (@id(%x), @id(%y)) }\ndef @id[A](%x: A) -> A { %x }",
     "fn (int32, float32) -> (int32, float32)"},
    {"def @main(%x: int32) { @id((%x, %x)) }\ndef @id[A](%x: A) -> A { %x }", "fn (int32) -> (int32, int32)"},
    {"def @main(%x: int32) { @id(@id)(%x) }\ndef @id[A](%x: A) -> A { %x }", "fn (int32) -> int32"},
    {"def @main(%x: int32, %y: float32) { @swap((%x, %y)) }\ndef @swap[A, B](%p: (A, B)) -> (B, A) { (%p.1, %p.0) }",
     "fn (int32, float32) -> (float32, int32)"},
    {"def @main(%x: int32) { @apply(fn (%y: int32) { (%y, %y) }, %x) }\n"
     "def @apply[A, B](%f: fn (A) -> B, %x: A) -> B { %f(%x) }",
     "fn (int32) -> (int32, int32)"},
    {"def @main(%x: int32) { @apply(@id, %x) }\n"
     "def @apply[A, B](%f: fn (A) -> B, %x: A) -> B { %f(%x) }\ndef @id[A](%x: A) -> A { %x }",
     "fn (int32) -> int32"},
    {"def @main(%l: List[int32]) { @map(fn (%x) { (%x, 1f) }, %l) }\n"
     "def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {\n"
     "  match (%l) { Cons(%h, %t) => { Cons(%f(%h), @map(%f, %t)) }, Nil => { Nil } } }",
     "fn (List[int32]) -> List[(int32, float32)]"},
    {"def @main(%l: List[int32]) { @foldl(fn (%a, %b) { add(%a, %b) }, 0, %l) }\n"
     "def @foldl[A, B](%f: fn (A, B) -> A, %a: A, %l: List[B]) -> A {\n"
     "  match (%l) { Cons(%h, %t) => { @foldl(%f, %f(%a, %h), %t) }, Nil => { %a } } }",
     "fn (List[int32]) -> int32"},
    {"def @main(%x: int32) { let %id = fn [A](%y: A) { %y }; (%id(%x), %id(1f)) }", "fn (int32) -> (int32, float32)"},
    {"def @main() { let %f = @id; (%f(1), %f(2f)) }\ndef @id[A](%x: A) -> A { %x }", "fn () -> (int32, float32)"},
    {"def @main(%c: bool) { (if (%c) { @id } else { @id2 })(1) }\n"
     "def @id[A](%x: A) -> A { %x }\ndef @id2[B](%x: B) -> B { %x }",
     "fn (bool) -> int32"},
    // wide tuples, of annotated types and of types inferred later
    {"def @main(%x: Tensor[(n), int32]) { let %a = %x; let %b = %a; (%x, %x, %x, %x, %x, %x, %x, %b) }",
     "fn (Tensor[(n), int32]) -> (Tensor[(n), int32], Tensor[(n), int32], Tensor[(n), int32], Tensor[(n), int32], "
     "Tensor[(n), int32], Tensor[(n), int32], Tensor[(n), int32], Tensor[(n), int32])"},
    {"def @main(%x: int32) { let %f = fn (%a) { let %b = %a; (%a, %a, %a, %a, %a, %a, %a, %b) };"
     " let %t = %f(%x); let %u = %t; (%u.7, %u) }",
     "fn (int32) -> (int32, (int32, int32, int32, int32, int32, int32, int32, int32))"},
    // data types
    {"def @main() { Cons(1, Nil) }", "fn () -> List[int32]"},
    {"def @main() { Some(1f) }", "fn () -> Option[float32]"},
    {"def @main() -> Option[int32] { None }", "fn () -> Option[int32]"},
    {"def @main() { S(S(Z)) }", "fn () -> Nat"},
    {"def @main() { Rose(1, Cons(Rose(2, Nil), Nil)) }", "fn () -> Tree[int32]"},
    {"def @main(%c: bool) { if (%c) { Left(1) } else { Right(2f) } }", "fn (bool) -> Either[int32, float32]"},
    {"def @main() { Cons((1, 2f), Nil) }", "fn () -> List[(int32, float32)]"},
    {"def @main() { let %m = &Some; %m(1) }", "fn () -> Option[int32]"},
    {"def @main(%n: Nat) { match (%n) { Z => { 0 }, S(_) => { 1 } } }", "fn (Nat) -> int32"},
    {"def @main(%o: Option[(int32, float32)]) { match (%o) { Some((%a, %b)) => { %b }, None => { 0f } } }",
     "fn (Option[(int32, float32)]) -> float32"},
    {"def @main(%l: List[Option[int32]]) { match (%l) { Cons(Some(%a), _) => { %a }, _ => { 0 } } }",
     "fn (List[Option[int32]]) -> int32"},
    {"def @main(%o) { match (%o) { Some(%a) => { %a }, None => { 0 } } }", "fn (Option[int32]) -> int32"},
    {"def @main(%l: List[int32]) { match? (%l) { Cons(%a, _) => { %a } } }", "fn (List[int32]) -> int32"},
    {"def @main(%p: (Nat, Nat)) { match (%p) { (Z, _) => { 0 }, (_, Z) => { 1 }, (S(_), S(_)) => { 2 } } }",
     "fn ((Nat, Nat)) -> int32"},
    {"type Many { M0, M1, M2, M3, M4, M5, M6, M7, M8, M9, }\n"
     "def @main(%a: Many, %b: (Many, (Many, Many))) { match ((%a, %b)) { (M0, (M1, (M2, M3))) => { 1 }, "
     "(M4, (M5, (M6, M7))) => { 2 }, (M8, (M9, (M0, M1))) => { 3 }, _ => { 4 } } }",
     "fn (Many, (Many, (Many, Many))) -> int32"},
    {"def @main(%n: Nat) { match (%n) { %m => { %m } } }", "fn (Nat) -> Nat"},
    // references
    {"def @main() { let %r = ref(0); let %u = ref_write(%r, 1); ref_read(%r) }", "fn () -> int32"},
    {"def @main() { let %r = ref(Nil); let %u = ref_write(%r, Cons(1, Nil)); %r }", "fn () -> ref(List[int32])"},
    // symbols
    {"def @main(%x: Tensor[(n, 3), float32]) { nn.relu(%x) }",
     "fn (Tensor[(n, 3), float32]) -> Tensor[(n, 3), float32]"},
    {"def @main(%x: Tensor[(4), float32]) { @f(%x) }\ndef @f(%y: Tensor[(n), float32]) { concatenate((%y, %y)) }",
     "fn (Tensor[(4), float32]) -> Tensor[(8), float32]"},
    {"def @main(%x: Tensor[(m), float32]) { @f(@f(%x)) }\ndef @f(%y: Tensor[(n), float32]) { concatenate((%y, %y)) }",
     "fn (Tensor[(m), float32]) -> Tensor[(m * 4), float32]"},
    {"def @main(%x: Tensor[(?), float32], %y: Tensor[(3), float32]) { @f(%x, %y) }\n"
     "def @f(%x: Tensor[(n), float32], %y: Tensor[(n), float32]) { add(%x, %y) }",
     "fn (Tensor[(?), float32], Tensor[(3), float32]) -> Tensor[(3), float32]"},
    {"def @main(%x: Tensor[(?), float32]) { @f(%x) }\ndef @f(%x: Tensor[(n), float32]) { nn.relu(%x) }",
     "fn (Tensor[(?), float32]) -> Tensor[(?), float32]"},
    {"def @main(%x: Tensor[(2), float32], %y: Tensor[(3), float32], %z: Tensor[(5), float32]) { @f(%x, %y, %z) }\n"
     "def @f(%x: Tensor[(n), float32], %y: Tensor[(m), float32], %z: Tensor[(n + m), float32]) { %z }",
     "fn (Tensor[(2), float32], Tensor[(3), float32], Tensor[(5), float32]) -> Tensor[(5), float32]"},
    // equations of dimensions
    {"def @main(%x: Tensor[(3), float32]) { @f(%x) }\n"
     "def @f(%x: Tensor[(n + 1), float32]) -> Tensor[(n), float32] { strided_slice(%x, begin=[1], end=[2147483647]) }",
     "fn (Tensor[(3), float32]) -> Tensor[(2), float32]"},
    {"def @main(%x: Tensor[(7), int8]) { @f(%x) }\n"
     "def @f(%x: Tensor[(n * 2 + 1), int8]) -> Tensor[(n), int8] { @f(%x) }",
     "fn (Tensor[(7), int8]) -> Tensor[(3), int8]"},
    {"def @main(%x: Tensor[(3), int8]) { @f(%x) }\n"
     "def @f(%x: Tensor[(n + 3), int8]) -> Tensor[(n), int8] { @f(%x) }",
     "fn (Tensor[(3), int8]) -> Tensor[(0), int8]"},
    {"def @main(%x: Tensor[(m * 2 + 4), int8]) { @f(%x) }\n"
     "def @f(%x: Tensor[(n * 2), int8]) -> Tensor[(n), int8] { @f(%x) }",
     "fn (Tensor[((m * 2) + 4), int8]) -> Tensor[(m + 2), int8]"},
    {"def @main(%x: Tensor[(m), int8]) { @f(%x) }\n"
     "def @f(%x: Tensor[(n * 2), int8]) -> Tensor[(n), int8] { @f(%x) }",
     "fn (Tensor[(m), int8]) -> Tensor[(?), int8]"},
    {"def @main(%x: Tensor[(7), int8], %y: Tensor[(5), int8], %z: Tensor[(3), int8]) { @f(%x, %y, %z) }\n"
     "def @f(%x: Tensor[(n + m), int8], %y: Tensor[(m + k), int8], %z: Tensor[(k + 1), int8])\n"
     "    -> Tensor[(n, m, k), int8] { @f(%x, %y, %z) }",
     "fn (Tensor[(7), int8], Tensor[(5), int8], Tensor[(3), int8]) -> Tensor[(4, 3, 2), int8]"},
    {"def @main(%x, %y, %z: Tensor[(7), int8]) { let %a = @f(%z, %x, %y); let %b = @three(%x); %a }\n"
     "def @f(%z: Tensor[(n + m), int8], %x: Tensor[(n), int8], %y: Tensor[(m), int8]) { %y }\n"
     "def @three(%x: Tensor[(3), int8]) { %x }",
     "fn (Tensor[(3), int8], Tensor[(4), int8], Tensor[(7), int8]) -> Tensor[(4), int8]"},
    {"def @main(%x: Tensor[(n), float32], %y: Tensor[(m), float32]) { concatenate((%x, %y)) }",
     "fn (Tensor[(n), float32], Tensor[(m), float32]) -> Tensor[(m + n), float32]"},
    {"def @main(%l: List[Tensor[(3), float32]]) { @map(@relu, %l) }\n"
     "def @relu(%x: Tensor[(n), float32]) { nn.relu(%x) }\n"
     "def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {\n"
     "  match (%l) { Cons(%h, %t) => { Cons(%f(%h), @map(%f, %t)) }, Nil => { Nil } } }",
     "fn (List[Tensor[(3), float32]]) -> List[Tensor[(3), float32]]"},
    {"def @main(%x: Tensor[(2), float32]) { @f(%x) }\n"
     "def @f(%y: Tensor[(n), float32]) -> Tensor[(?), float32] {\n"
     "  if (True) { %y } else { @f(concatenate((%y, %y))) } }",
     "fn (Tensor[(2), float32]) -> Tensor[(?), float32]"},
};

constexpr InferCase kRefused[] = {
    {"def @main(%x) { %x }", "variable '%x' cannot be inferred"},
    {"def @main(%x, %y: int32) { %y }", "variable '%x' cannot be inferred"},
    {"def @main(%x) { nn.relu(%x) }", "variable '%x' cannot be inferred"},
    {"def @main() { Nil }", "cannot be inferred"},
    {"def @main() { ref(Nil) }", "cannot be inferred"},
    {"def @main(%l) { match (%l) { Cons(%h, %t) => { add(%h, @main(%t)) }, Nil => { 0 } } }",
     "variable '%l' cannot be inferred (so far List[_])"},
    {"def @main() { let %n = Nil; 1 }", "variable '%n' cannot be inferred"},
    {"def @main(%x: int32) { @main(%x) }", "what '@main' gives cannot be inferred"},
    {"def @main(%x: Tensor[(1, 3, 8, 8), float32], %w) { nn.conv2d(%x, %w, kernel_size=[3, 3]) }",
     "variable '%w' cannot be inferred"},
    // A wrong attribute is reported, and not the weight whose type is unknown because of it.
    {"def @main(%x: Tensor[(1, 3, 8, 8), float32], %w) { nn.conv2d(%x, %w, strides=[0, 0]) }",
     "strides must be at least 1"},
    {"def @main(%x: Tensor[(1, 3, 8, 8), float32], %w) { nn.conv2d(%x, %w, padding=[1, 2, 3]) }",
     "padding must have 1, 2 or 4 values"},
    {"def @main(%x: Tensor[(1, 3, 8, 8), float32], %w) { nn.conv2d(%x, %w, data_layout=\"NHWX\") }",
     "data_layout must be an order of the letters NCHW"},
    {"def @main(%x: Tensor[(1, 3, 8, 8), float32], %w) { nn.conv2d(%x, %w, channels=4, kernel_size=[3]) }",
     "kernel_size must have 2 values"},
    {"def @main(%x: Tensor[(1, 3, 8, 8), float32], %w) { nn.conv2d(%x, %w, channels=4, kernel_size=[3, 3], groups=0) }",
     "groups must be at least 1"},
    {"def @main(%x: Tensor[(1, 3, 8), float32], %w) { nn.conv1d(%x, %w, strides=[0]) }", "strides must be at least 1"},
    {"def @main(%x: Tensor[(1, 3, 8, 8), float32], %w) { nn.conv2d_transpose(%x, %w, dilation=[0, 1]) }",
     "dilation must be at least 1"},
    {"def @main(%x: Tensor[(2, 7), float32], %b) { let %y: Tensor[(6), float32] = %b; nn.bias_add(%x, %b) }",
     "nn.bias_add: bias must have shape (7), axis 1 of data Tensor[(2, 7), float32], got Tensor[(6), float32]"},
    {"def @main(%f) { %f(%f) }", "a function cannot be its own argument"},
    {"def @main(%x: float32) -> int32 { %x }", "annotated to give int32 and its body gives float32"},
    {"def @main(%x: int32) { let %y: float32 = %x; %y }", "variable '%y' is annotated as float32 and bound to int32"},
    {"def @main(%x: int32) { if (%x) { 1 } else { 2 } }", "the condition is int32, expected a bool scalar"},
    {"def @main(%c: Tensor[(2), bool]) { if (%c) { 1 } else { 2 } }", "the condition is Tensor[(2), bool]"},
    {"def @main(%c: bool) { if (%c) { 1 } else { 2f } }", "the branches have different types: int32 and float32"},
    {"def @main(%c: bool) { if (%c) { Nil } else { 1 } }", "the branches have different types"},
    {"def @main(%c: bool) { if (%c) { Cons(1, Nil) } else { Cons(1f, Nil) } }", "List[int32] and List[float32]"},
    {"def @main() { Cons(1, Cons(1f, Nil)) }", "argument 1 is List[float32], expected List[int32]"},
    {"def @main() { Cons(1) }", "takes 2 arguments, got 1"},
    {"def @main(%x: int32) { %x(1) }", "a value of type int32 is called, which is not a function"},
    {"def @main(%x: int32) { @f(%x, %x) }\ndef @f(%x: int32) { %x }", "takes 1 argument, got 2"},
    {"def @main(%x: int32) { @f(%x) }\ndef @f(%x: float32) { %x }", "argument 0 is int32, expected float32"},
    {"def @main(%x: int32) { @nobody(%x) }", "@nobody"},
    {"def @main(%x: int32) { %x.0 }", "not a tuple: int32"},
    {"def @main(%x: (int32,)) { %x.1 }", "item 1 is taken of a tuple of 1"},
    {"def @main(%x: int32) { ref_read(%x) }", "a reference is expected, got int32"},
    {"def @main(%r: ref(int32)) { ref_write(%r, 1f) }", "error: float32 is written to a reference of int32"},
    {"def @main(%f: fn (int32) -> int32) { %f(1f) }", "argument 0 is float32, expected int32"},
    {"def @main(%x: int32) { @apply(fn (%y: float32) { %y }, %x) }\n"
     "def @apply[A, B](%f: fn (A) -> B, %x: A) -> B { %f(%x) }",
     "argument 1 is int32, expected float32"},
    {"def @main(%f, %x: int32) { (%f(%x), %f(1f)) }", "argument 0 is float32, expected int32"},
    {"def @main(%x: int32) { let %id = fn (%y) { %y }; (%id(%x), %id(1f)) }", "argument 0 is float32, expected int32"},
    {"def @bad[A](%x: A) -> A { 1 }\ndef @main() { @bad(1) }", "annotated to give A and its body gives int32"},
    {"def @bad[A, B](%x: A) -> B { %x }\ndef @main() { 1 }", "annotated to give B and its body gives A"},
    // types without an end
    {"def @main(%f) { %f(%f) }", "its own argument: the type would be infinite, since it would contain itself"},
    {"def @main(%c: bool, %x) { if (%c) { %x } else { (%x, %x) } }",
     "(_, _): the type would be infinite, since it would contain itself"},
    {"def @main(%x: int32) { let %f = fn (%y) { (%y, %f(%y)) }; %f(%x) }",
     "error: the function's body gives (_, _): the type would be infinite, since it would contain itself"},
    {"def @main(%c: bool) -> float32 { @f(%c) }\n"
     "def @f(%c) { let %y: float32 = @f(%c); if (%c) { 1 } else { 2 } }",
     "the function is called to give float32 and its body gives int32"},
    {"def @main() { let %r = ref(Nil); let %u = ref_write(%r, Cons(%r, Nil)); 1 }",
     ": the type would be infinite, since it would contain itself"},
    // kinds
    {"def @main(%l: List) { %l }", "List is a adt_handle, expected a type"},
    {"def @main(%l: List[int32, int32]) { %l }", "the type 'List' takes 1 argument, got 2"},
    {"def @main(%l: (List, int32)) { %l }", "an item of a tuple must be a type, and List is a adt_handle"},
    {"def @main[n: shape_var](%l: List[n]) { %l }", "argument 0 of 'List' must be a type, and n is a shape_var"},
    {"def @main(%f: fn (Either) -> int32) { 1 }", "a parameter of a function must be a type, and Either is"},
    {"def @main(%r: ref(Option)) { 1 }", "the content of a reference must be a type"},
    {"type Bad { Put(List), }\ndef @main() { 1 }", "field 0 must be a type, and List is a adt_handle"},
    // matches
    {"def @main(%l: List[int32]) { match (%l) { Cons(_, _) => { 1 } } }", "no clause covers Nil"},
    {"def @main(%l: List[int32]) { match (%l) { Nil => { 1 } } }", "no clause covers Cons(_, _)"},
    {"def @main(%l: List[int32]) { match (%l) { Cons(_, Cons(_, _)) => { 1 }, Nil => { 2 } } }",
     "no clause covers Cons(_, Nil)"},
    {"def @main(%p: (Nat, Nat)) { match (%p) { (Z, _) => { 0 }, (_, Z) => { 1 } } }", "no clause covers (S(_), S(_))"},
    {"def @main(%o: Option[Nat]) { match (%o) { Some(Z) => { 0 } } }", "no clause covers Some(S(_)), None"},
    {"def @main(%x: int32) { match (%x) { Some(_) => { 1 }, None => { 2 } } }", "int32 is matched against Some"},
    {"def @main(%l: List[int32]) { match (%l) { Some(_) => { 1 }, _ => { 2 } } }",
     "a value of List[int32] is matched against Some of Option"},
    {"def @main(%l: List[int32]) { match (%l) { Cons(_) => { 1 }, _ => { 2 } } }",
     "Cons has 2 fields; the pattern names 1"},
    {"def @main(%p: (int32, int32)) { match (%p) { (_, _, _) => { 1 } } }", "a pattern of 3 items does not fit"},
    {"def @main(%o: Option[int32]) { match (%o) { Some(%a) => { %a }, None => { 0f } } }",
     "the clauses have different types: int32 and float32"},
    // symbols
    {"def @main(%c: bool, %x, %y: Tensor[(4), float32]) { let %d = if (%c) { @double(%x) } else { %y }; @three(%x) }\n"
     "def @double(%x: Tensor[(n), float32]) { concatenate((%x, %x)) }\ndef @three(%x: Tensor[(3), float32]) { %x }",
     "argument 0 is Tensor[(2), float32], expected Tensor[(3), float32]"},
    {"def @main(%c: bool, %x, %y: Tensor[(4), float32]) { let %d = if (%c) { @square(%x) } else { %y }; @three(%x) }\n"
     "def @square(%x: Tensor[(n), float32]) -> Tensor[(n * n), float32] { @square(%x) }\n"
     "def @three(%x: Tensor[(3), float32]) { %x }",
     "error: the dimension 9 must be 4\n"},
    {"def @main(%x: Tensor[(3), int8]) { @f(%x) }\ndef @f(%x: Tensor[(n * 2), int8]) { 1 }",
     "error: argument 0 is Tensor[(3), int8], expected Tensor[(n * 2), int8]: no size n makes n * 2 equal to 3\n"},
    {"def @main(%x: Tensor[(3), int8]) { @f(%x) }\ndef @f(%x: Tensor[(n + 5), int8]) { 1 }",
     "error: argument 0 is Tensor[(3), int8], expected Tensor[(n + 5), int8]: no size n makes n + 5 equal to 3\n"},
    {"def @main(%x: Tensor[(3), int8], %y: Tensor[(4), int8]) { @f(%x, %y) }\n"
     "def @f(%x: Tensor[(n + m), int8], %y: Tensor[(n), int8]) { 1 }",
     "error: argument 0 is Tensor[(3), int8], expected Tensor[(m + 4), int8]: no size m makes m + 4 equal to 3\n"},
    {"def @main(%x, %y, %z: Tensor[(3), float32]) { let %a = @sum(%z, %x, %y); @four(%x) }\n"
     "def @sum(%z: Tensor[(n + m), float32], %x: Tensor[(n), float32], %y: Tensor[(m), float32]) { %z }\n"
     "def @four(%x: Tensor[(4), float32]) { %x }",
     "the dimension m + 4 must be 3"},
    {"def @main(%x: Tensor[(3), float32], %y: Tensor[(4), float32]) { @f(%x, %y) }\n"
     "def @f(%x: Tensor[(n), float32], %y: Tensor[(n), float32]) { %x }",
     "argument 1 is Tensor[(4), float32], expected Tensor[(3), float32]"},
    {"def @main(%x: Tensor[(2), float32], %y: Tensor[(3), float32], %z: Tensor[(6), float32]) { @f(%x, %y, %z) }\n"
     "def @f(%x: Tensor[(n), float32], %y: Tensor[(m), float32], %z: Tensor[(n + m), float32]) { %z }",
     "argument 2 is Tensor[(6), float32], expected Tensor[(5), float32]"},
    {"def @main(%x: Tensor[(n), float32]) { let %y: Tensor[(3), float32] = %x; %y }",
     "annotated as Tensor[(3), float32] and bound to Tensor[(n), float32]"},
    {"def @main(%x: Tensor[(n), float32]) { @f(%x) }\n"
     "def @f(%y: Tensor[(k), float32]) { if (True) { %y } else { @f(concatenate((%y, %y))) } }",
     "expected Tensor[(k), float32]"},
    {"def @main(%x: Tensor[(3), float32]) { @f(%x) }\ndef @f(%x: Tensor[(n, m), float32]) { %x }",
     "argument 0 is Tensor[(3), float32], expected Tensor["},
    {"def @main(%x, %y: Tensor[(4), float32]) { let %z = @f(%x, %y); @three(%x) }\n"
     "def @f(%x: Tensor[(n), float32], %y: Tensor[(n), float32]) { %x }\n"
     "def @three(%x: Tensor[(3), float32]) { %x }",
     "Tensor[(3), float32]"},
};

TEST(InferCases, Typed) {
  for (const InferCase& c : kTyped) expect_typed(c);
}

// A program without any annotation is told the one annotation that suffices.
TEST(InferCases, TheVariablesThatCouldSayIt) {
  const std::string found = type_of_main("def @main(%x) { let %y = nn.relu(%x); let %z = nn.relu(%y); %z }");
  EXPECT_TRUE(found.starts_with("error: the type of variable '%x' cannot be inferred")) << found;
  EXPECT_EQ(found.substr(0, found.find('\n')).find("%y"), std::string::npos) << found;
}

// An interpreter does not need parts of types that nothing determines, in however many places.
TEST(InferCases, PartsOfTypesMayBeOpen) {
  const auto read = [](std::string_view program) {
    ops::register_all_ops();
    return parse_module(fmt::format("#[version = \"0.0.5\"]{}{}", kTypesOfCases, program), "case");
  };
  for (const char* program : {"def @main() { Nil }", "def @main() { let %n = Nil; let %m = None; 1 }",
                              "def @main(%l) { match (%l) { Cons(%h, %t) => { @main(%t) }, Nil => { 0 } } }"}) {
    const IRModule module = read(program);
    EXPECT_EQ(infer_type_if_settled(module), module) << program;
    EXPECT_THROW(infer_type(module), UserError) << program;
  }
  const IRModule typed = infer_type_if_settled(read("def @main() { (1, 2f) }"));
  EXPECT_EQ(to_string(typed->lookup("main")->checked_type()), "fn () -> (int32, float32)");
  for (const char* program :
       {"def @main(%x) { %x }", "def @main(%x, %l) { let %n = Nil; match (%l) { Cons(_, _) => { 1 }, Nil => { 0 } } }",
        "def @main(%x: float32) -> int32 { let %n = Nil; %x }"})
    EXPECT_THROW(infer_type_if_settled(read(program)), UserError) << program;
}

TEST(InferCases, DeepTypesAreRefused) {
  std::string deep = "int32";
  for (int i = 0; i < 450; ++i) deep = "(" + deep + ",)";
  for (const std::string& program :
       {"type Bad { Put(" + deep + "), }\ndef @main() { 1 }", "def @main(%x: " + deep + ") { 1 }"}) {
    const std::string found = type_of_main(program);
    EXPECT_TRUE(found.starts_with("error: ") && found.find("deep") != std::string::npos) << found.substr(0, 300);
  }
}

// Pairs of pairs: each let doubles the type, unless something stops it.
TEST(InferCases, TypesThatExplodeAreRefused) {
  std::string program = "def @main(%c: bool, %a0: int32";
  for (int i = 1; i <= 18; ++i) program += fmt::format(", %a{}", i);
  program += ") {\n";
  for (int i = 18; i >= 1; --i)
    program += fmt::format("  let %x{} = if (%c) {{ %a{} }} else {{ (%a{}, %a{}) }};\n", i, i, i - 1, i - 1);
  const std::string found = type_of_main(program + "  %x1\n}");
  EXPECT_NE(found.find("nests deeper than 200 or has more than"), std::string::npos) << found.substr(0, 300);
}

TEST(InferCases, Refused) {
  for (const InferCase& c : kRefused) expect_refused(c);
}

// Inferred types are written into the program: it reads back, and infers again to the same.
TEST(InferCases, ParametersGetTheirTypes) {
  ops::register_all_ops();
  const IRModule module =
      infer_type(parse_module("#[version = \"0.0.5\"]\ndef @main(%x, %y: (_, int32)) { @take(%x, %y) }\n"
                              "def @take(%a: float32, %b: (bool, int32)) { %a }",
                              "case"));
  const Function main = module->lookup("main").cast<FunctionNode>();
  EXPECT_EQ(to_string(main->params[0]->type_annotation), "float32");
  EXPECT_EQ(to_string(main->params[1]->type_annotation), "(bool, int32)");
  EXPECT_EQ(infer_type(module), module);
}

}  // namespace
}  // namespace headrace::relay
