#include "bench/scaling_shapes.h"

#include <fmt/format.h>

namespace headrace::bench {

namespace {

// A macro, so that it joins the literals around it.
#define F32 "Tensor[(2), float32]"
constexpr const char* kVersion = "#[version = \"0.0.5\"]\n";
constexpr const char* kMain = "def @main(%x: " F32 ") -> " F32 " {\n";

// `line(i)` for 0 <= i < size, one after the other.
template <typename Line>
std::string lines(int64_t size, Line&& line) {
  std::string text;
  for (int64_t i = 0; i < size; ++i) text += line(i);
  return text;
}

std::string repeated(std::string_view text, int64_t count) {
  return lines(count, [&](int64_t) { return text; });
}

std::string main_of(const std::string& body) { return fmt::format("{}{}{}\n}}\n", kVersion, kMain, body); }

// `%k` before definition k of a chain that starts with the parameter.
std::string before(int64_t i) { return i == 0 ? "%x" : fmt::format("%{}", i - 1); }
std::string let_before(int64_t i) { return i == 0 ? "%x" : fmt::format("%v{}", i - 1); }

// ---- long

std::string calls(int64_t n) {
  static constexpr const char* kOps[] = {"nn.relu", "exp", "sigmoid", "tanh"};
  const auto line = [](int64_t i) { return fmt::format("%{} = {}({});\n", i, kOps[i % 4], before(i)); };
  return main_of(lines(n, line) + before(n));
}

std::string lets(int64_t n) {
  const auto line = [](int64_t i) { return fmt::format("let %v{} = nn.relu({});\n", i, let_before(i)); };
  return main_of(lines(n, line) + let_before(n));
}

std::string diamonds(int64_t n) {
  const auto line = [](int64_t i) { return fmt::format("%{} = subtract({}, {});\n", i, before(i), before(i)); };
  return main_of(lines(n, line) + before(n));
}

std::string one_variable(int64_t n) {
  const auto line = [](int64_t i) { return fmt::format("%{} = add({}, %x);\n", i, before(i)); };
  return main_of(lines(n, line) + before(n));
}

std::string constants(int64_t n) {
  const auto line = [](int64_t i) { return fmt::format("%{} = add({}, {}f);\n", i, before(i), i); };
  return main_of(lines(n, line) + before(n));
}

std::string folded(int64_t n) {
  const auto line = [](int64_t i) { return fmt::format("%{} = add({}, 1f);\n", i, i == 0 ? "2f" : before(i)); };
  return main_of(lines(n, line) + fmt::format("add(%x, {})", before(n)));
}

std::string references(int64_t n) {
  const auto line = [](int64_t i) {
    return fmt::format(
        "let %r{0} = ref({1});\nlet %u{0} = ref_write(%r{0}, nn.relu(%x));\nlet %v{0} = ref_read(%r{0});\n", i,
        let_before(i));
  };
  return main_of(lines(n, line) + let_before(n));
}

std::string one_reference(int64_t n) {
  const auto line = [](int64_t i) {
    return fmt::format("let %v{0} = ref_read(%r);\nlet %u{0} = ref_write(%r, nn.relu(%v{0}));\n", i);
  };
  return main_of("let %r = ref(%x);\n" + lines(n, line) + "ref_read(%r)");
}

std::string copied_references(int64_t n) {
  const auto line = [](int64_t i) { return fmt::format("let %r{} = ref(ref_read(%r{}));\n", i + 1, i); };
  return main_of("let %r0 = ref(%x);\n" + lines(n, line) + fmt::format("ref_read(%r{})", n));
}

std::string convolutions(int64_t n) {
  const auto line = [](int64_t i) {
    return fmt::format(
        "%{0} = nn.conv2d({1}, %w, channels=2, kernel_size=[1, 1]);\n%{2} = multiply(%{0}, %s);\n%{3} = "
        "nn.relu(%{2});\n",
        3 * i, before(3 * i), 3 * i + 1, 3 * i + 2);
  };
  return fmt::format(
      "{}def @main(%x: Tensor[(1, 2, 1, 1), float32], %w: Tensor[(2, 2, 1, 1), float32], %s: Tensor[(2, 1, 1), "
      "float32]) "
      "{{\n{}{}\n}}\n",
      kVersion, lines(n, line), before(3 * n));
}

std::string shapes_computed(int64_t n) {
  const auto line = [](int64_t i) {
    return fmt::format("%{} = shape_of({}, dtype=\"int64\");\n%{} = reshape({}, %{});\n", 2 * i, before(2 * i),
                       2 * i + 1, before(2 * i), 2 * i);
  };
  return main_of(lines(n, line) + before(2 * n));
}

std::string transposes(int64_t n) {
  const auto line = [](int64_t i) { return fmt::format("%{} = transpose({}, axes=[1, 0]);\n", i, before(i)); };
  return fmt::format("{}def @main(%x: Tensor[(2, 2), float32]) {{\n{}{}\n}}\n", kVersion, lines(n, line), before(n));
}

// ---- wide

std::string wide_tuple(int64_t n) {
  const std::string items = lines(n, [](int64_t) { return "nn.relu(%x), "; });
  return fmt::format("{}def @main(%x: " F32 ") {{\n({})\n}}\n", kVersion, items);
}

std::string one_op(int64_t n) {
  return fmt::format("{}def @main(%x: " F32 ") {{\nconcatenate(({}))\n}}\n", kVersion, repeated("%x, ", n));
}

std::string one_op_of_calls(int64_t n) {
  const auto line = [](int64_t i) { return fmt::format("%{} = nn.relu(%p{});\n", i, i % 2); };
  const std::string items = lines(n, [](int64_t i) { return fmt::format("%{}, ", i); });
  return fmt::format("{}def @main(%p0: " F32 ", %p1: " F32 ") {{\n{}concatenate(({}))\n}}\n", kVersion, lines(n, line),
                     items);
}

std::string split_items(int64_t n) {
  const auto line = [](int64_t i) {
    return fmt::format("%{} = %s.{};\n%{} = exp(%{});\n", 2 * i, i, 2 * i + 1, 2 * i);
  };
  const std::string items = lines(n, [](int64_t i) { return fmt::format("%{}, ", 2 * i + 1); });
  return fmt::format(
      "{0}def @main(%x: Tensor[({1}), float32]) {{\nlet %s = split(%x, indices_or_sections={1}, axis=0);\n{2}"
      "concatenate(({3}))\n}}\n",
      kVersion, n, lines(n, line), items);
}

std::string parameters(int64_t n) {
  const std::string params = lines(n, [](int64_t i) { return fmt::format("%p{}: " F32 ", ", i); });
  const auto line = [](int64_t i) {
    return fmt::format("%{} = add({}, %p{});\n", i, i == 0 ? std::string("%p0") : before(i), i);
  };
  return fmt::format("{}def @main({}) {{\n{}{}\n}}\n", kVersion, params, lines(n, line), before(n));
}

std::string parallel_convolutions(int64_t n) {
  const auto line = [](int64_t i) {
    return fmt::format("%{} = nn.conv2d(%x, %w, channels=2, kernel_size=[1, 1]);\n", i);
  };
  const std::string items = lines(n, [](int64_t i) { return fmt::format("%{}, ", i); });
  return fmt::format(
      "{}def @main(%x: Tensor[(1, 2, 1, 1), float32], %w: Tensor[(2, 2, 1, 1), float32]) {{\n{}concatenate(({}), "
      "axis=1)"
      "\n}}\n",
      kVersion, lines(n, line), items);
}

std::string parallel_products(int64_t n) {
  const auto line = [](int64_t i) { return fmt::format("%{} = nn.dense(%x, %w, units=2);\n", i); };
  const std::string items = lines(n, [](int64_t i) { return fmt::format("%{}, ", i); });
  return fmt::format(
      "{}def @main(%x: Tensor[(1, 2), float32], %w: Tensor[(2, 2), float32]) {{\n{}concatenate(({}), axis=1)\n}}\n",
      kVersion, lines(n, line), items);
}

// ---- deep

std::string deep_tuple(int64_t n) {
  return fmt::format("{}def @main(%x: " F32 ") {{\n{}%x{}\n}}\n", kVersion, repeated("(", n), repeated(",)", n));
}

std::string deep_items(int64_t n) {
  const auto line = [](int64_t i) {
    return fmt::format("%{} = ({}, %x);\n%{} = %{}.0;\n%{} = nn.relu(%{});\n", 3 * i, before(3 * i), 3 * i + 1, 3 * i,
                       3 * i + 2, 3 * i + 1);
  };
  return main_of(lines(n, line) + before(3 * n));
}

std::string deep_functions(int64_t n) {
  return fmt::format("{}def @main(%x: " F32 ") {{\n{}%x{}\n}}\n", kVersion, repeated("fn () {", n), repeated("}", n));
}

std::string called_functions(int64_t n) {
  const std::string opened = lines(n, [](int64_t i) { return fmt::format("fn (%a{}: " F32 ") {{\n", i); });
  const auto close = [n](int64_t i) {
    return fmt::format("}}({})", n - i >= 2 ? fmt::format("%a{}", n - i - 2) : "%x");
  };
  return main_of(opened + fmt::format("nn.relu(%a{})", n - 1) + lines(n, close));
}

std::string called_lets(int64_t n) {
  const auto open = [](int64_t i) { return fmt::format("let %f{0} = fn (%a{0}: " F32 ") {{\n", i); };
  const auto close = [n](int64_t i) {
    const int64_t k = n - 1 - i;
    return fmt::format("\n}};\n%f{}({})", k, k == 0 ? "%x" : fmt::format("%a{}", k - 1));
  };
  return main_of(lines(n, open) + fmt::format("nn.relu(%a{})", n - 1) + lines(n, close));
}

// Each function captures the parameters of all around it.
std::string nested_captures(int64_t n) {
  const auto open = [](int64_t i) { return fmt::format("let %f{0} = fn (%a{0}: " F32 ") {{\n", i); };
  const auto close = [n](int64_t i) {
    const int64_t k = n - 1 - i;
    return fmt::format("\n}};\n%f{}({})", k, k == 0 ? "%x" : fmt::format("%a{}", k - 1));
  };
  const auto use = [](int64_t i) { return fmt::format("%{} = add({}, %a{});\n", i, before(i), i); };
  return main_of(lines(n, open) + lines(n, use) + before(n) + lines(n, close));
}

std::string deep_lets(int64_t n) {
  const std::string opened = lines(n, [](int64_t i) { return fmt::format("let %v{} = {{\n", i); });
  const auto close = [n](int64_t i) { return fmt::format("}};\nnn.relu(%v{})\n", n - 1 - i); };
  return main_of(opened + "nn.relu(%x)" + lines(n, close));
}

std::string deep_ifs(int64_t n) {
  return main_of(repeated("if (less(sum(%x), 9f)) {\n", n) + "nn.relu(%x)\n" + repeated("} else {\n%x\n}\n", n));
}

std::string else_ifs(int64_t n) {
  return main_of(repeated("if (less(sum(%x), -9f)) {\nexp(%x)\n} else {\n", n) + "nn.relu(%x)\n" + repeated("}\n", n));
}

std::string ifs_in_a_row(int64_t n) {
  const auto line = [](int64_t i) {
    return fmt::format("let %v{0} = if (less(sum({1}), 9f)) {{\nnn.relu({1})\n}} else {{\n%x\n}};\n", i, let_before(i));
  };
  return main_of(lines(n, line) + let_before(n));
}

constexpr const char* kList = "type List[A] {\n  Cons(A, List[A]),\n  Nil,\n}\n";

std::string deep_matches(int64_t n) {
  const auto open = [](int64_t i) { return fmt::format("match (%l{}) {{\nCons(%h{}, %l{}) => ", i, i + 1, i + 1); };
  return fmt::format("{}{}def @main(%x: " F32 ") {{\nlet %l0 = Cons(%x, Nil);\n{}{{\nnn.relu(%x)\n}}{}\n}}\n", kVersion,
                     kList, lines(n, open), lines(n, [](int64_t) { return ",\nNil => %x,\n}"; }));
}

std::string long_list(int64_t n) {
  return fmt::format("{}{}def @main(%x: " F32 ") {{\n{}Nil{}\n}}\n", kVersion, kList, repeated("Cons(%x, ", n),
                     repeated(")", n));
}

std::string symbols(int64_t n) {
  const std::string params = lines(n, [](int64_t i) { return fmt::format("%p{0}: Tensor[(n{0}), float32], ", i); });
  const std::string items = lines(n, [](int64_t i) { return fmt::format("%p{}, ", i); });
  return fmt::format("{}def @main({}) {{\nconcatenate(({}))\n}}\n", kVersion, params, items);
}

std::string growing_symbol(int64_t n) {
  const auto line = [](int64_t i) { return fmt::format("%{} = concatenate(({}, %x));\n", i, before(i)); };
  return fmt::format("{}def @main(%x: Tensor[(n), float32]) {{\n{}{}\n}}\n", kVersion, lines(n, line), before(n));
}

// Its types are as long as what came before.
std::string sums_of_symbols(int64_t n) {
  const std::string params = lines(n, [](int64_t i) { return fmt::format("%p{0}: Tensor[(n{0}), float32], ", i); });
  const auto line = [](int64_t i) {
    return fmt::format("%{} = concatenate(({}, %p{}));\n", i, i == 0 ? std::string("%p0") : before(i), i);
  };
  return fmt::format("{}def @main({}) {{\n{}{}\n}}\n", kVersion, params, lines(n, line), before(n));
}

// ---- many functions and types

std::string globals(int64_t n) {
  const auto line = [](int64_t i) { return fmt::format("def @f{}(%a: " F32 ") -> " F32 " {{\nnn.relu(%a)\n}}\n", i); };
  const auto call = [](int64_t i) { return fmt::format("%{} = @f{}({});\n", i, i, before(i)); };
  return fmt::format("{}{}{}{}{}\n}}\n", kVersion, lines(n, line), kMain, lines(n, call), before(n));
}

std::string global_chain(int64_t n) {
  const auto line = [](int64_t i) {
    return fmt::format("def @f{}(%a: " F32 ") -> " F32 " {{\n{}(%a)\n}}\n", i,
                       i == 0 ? "nn.relu" : fmt::format("@f{}", i - 1));
  };
  return fmt::format("{}{}{}@f{}(%x)\n}}\n", kVersion, lines(n, line), kMain, n - 1);
}

// Functions that call each other, without declared results.
std::string open_global_chain(int64_t n) {
  const auto line = [](int64_t i) {
    return fmt::format("def @f{}(%a: " F32 ") {{\n{}(%a)\n}}\n", i, i == 0 ? "nn.relu" : fmt::format("@f{}", i - 1));
  };
  return fmt::format("{}{}{}@f{}(%x)\n}}\n", kVersion, lines(n, line), kMain, n - 1);
}

std::string aliases(int64_t n) {
  const auto line = [](int64_t i) {
    return fmt::format("let %f{} = fn (%a{}: " F32 ") {{\n{}(%a{})\n}};\n", i, i,
                       i == 0 ? "nn.relu" : fmt::format("%f{}", i - 1), i);
  };
  return main_of(lines(n, line) + fmt::format("%f{}(%x)", n - 1));
}

// The shape above with parameters whose types are inferred.
std::string open_aliases(int64_t n) {
  const auto line = [](int64_t i) {
    return fmt::format("let %f{} = fn (%a{}) {{\n{}(%a{})\n}};\n", i, i,
                       i == 0 ? "nn.relu" : fmt::format("%f{}", i - 1), i);
  };
  return main_of(lines(n, line) + fmt::format("%f{}(%x)", n - 1));
}

std::string open_calls(int64_t n) {
  const auto line = [](int64_t i) {
    return fmt::format("let %f{0} = fn (%a{0}) {{\nnn.relu(%a{0})\n}};\nlet %v{0} = %f{0}({1});\n", i, let_before(i));
  };
  return main_of(lines(n, line) + let_before(n));
}

std::string names_of_one_function(int64_t n) {
  const auto line = [](int64_t i) { return fmt::format("let %f{} = %f{};\n", i + 1, i); };
  return main_of("let %f0 = fn (%a: " F32 ") {\nnn.relu(%a)\n};\n" + lines(n, line) + fmt::format("%f{}(%x)", n));
}

std::string closures(int64_t n) {
  const auto line = [](int64_t i) {
    return fmt::format("let %f{0} = fn (%a{0}: " F32 ") {{\nadd(%a{0}, {1})\n}};\nlet %v{0} = %f{0}(%x);\n", i,
                       let_before(i));
  };
  return main_of(lines(n, line) + let_before(n));
}

std::string passed_functions(int64_t n) {
  const auto line = [](int64_t i) { return fmt::format("%{} = %f(%g, {});\n", i, before(i)); };
  return main_of("let %f = fn (%h: fn (" F32 ") -> " F32 ", %a: " F32 ") {\n%h(%a)\n};\nlet %g = fn (%b: " F32
                 ") {\nnn.relu(%b)\n};\n" +
                 lines(n, line) + before(n));
}

std::string function_values(int64_t n) {
  const auto line = [](int64_t i) {
    return fmt::format("%{} = %f(fn (%b{}: " F32 ") {{\nadd(%b{}, {}f)\n}}, {});\n", i, i, i, i, before(i));
  };
  return main_of("let %f = fn (%h: fn (" F32 ") -> " F32 ", %a: " F32 ") {\n%h(%a)\n};\n" + lines(n, line) + before(n));
}

std::string types(int64_t n) {
  const auto line = [](int64_t i) { return fmt::format("type T{0} {{\n  C{0}(" F32 "),\n}}\n", i); };
  const auto use = [](int64_t i) {
    return fmt::format("%{} = match (C{}({})) {{\nC{}(%h{}) => nn.relu(%h{}),\n}};\n", i, i, before(i), i, i, i);
  };
  return fmt::format("{}{}{}{}{}\n}}\n", kVersion, lines(n, line), kMain, lines(n, use), before(n));
}

std::string constructors(int64_t n) {
  const auto line = [](int64_t i) { return fmt::format("  C{}(" F32 "),\n", i); };
  const auto clause = [](int64_t i) { return fmt::format("C{0}(%h{0}) => nn.relu(%h{0}),\n", i); };
  return fmt::format("{}type T {{\n{}}}\n{}match (C{}(%x)) {{\n{}}}\n}}\n", kVersion, lines(n, line), kMain, n - 1,
                     lines(n, clause));
}

std::string type_errors(int64_t n) {
  const auto line = [](int64_t i) { return fmt::format("%{} = add(%x, %y);\n", i); };
  const std::string items = lines(n, [](int64_t i) { return fmt::format("%{}, ", i); });
  return fmt::format("{}def @main(%x: " F32 ", %y: Tensor[(3), float32]) {{\n{}({})\n}}\n", kVersion, lines(n, line),
                     items);
}

}  // namespace

#undef F32

const std::vector<ScalingShape>& scaling_shapes() {
  static const std::vector<ScalingShape> shapes{
      {"calls", 4000, calls},
      {"lets", 4000, lets},
      {"diamonds", 4000, diamonds},
      {"one variable", 4000, one_variable},
      {"constants", 4000, constants},
      {"folded", 2000, folded},
      {"references", 2000, references},
      {"one reference", 2000, one_reference},
      {"copied references", 2000, copied_references},
      {"convolutions", 1000, convolutions},
      {"shapes computed", 2000, shapes_computed},
      {"transposes", 4000, transposes},
      {"wide tuple", 4000, wide_tuple},
      {"one op", 4000, one_op},
      {"one op of calls", 4000, one_op_of_calls},
      {"split", 2000, split_items},
      {"parameters", 4000, parameters},
      {"parallel convolutions", 1000, parallel_convolutions},
      {"parallel products", 1000, parallel_products},
      {"deep tuple", 4000, deep_tuple},
      {"deep items", 2000, deep_items},
      {"deep functions", 4000, deep_functions},
      {"called functions", 2000, called_functions},
      {"called lets", 2000, called_lets},
      {"nested captures", 100, nested_captures},
      {"deep lets", 2000, deep_lets},
      {"deep ifs", 2000, deep_ifs},
      {"else ifs", 2000, else_ifs},
      {"ifs in a row", 2000, ifs_in_a_row},
      {"deep matches", 1000, deep_matches},
      {"long list", 4000, long_list},
      {"symbols", 1000, symbols},
      {"growing symbol", 1000, growing_symbol},
      {"sums of symbols", 100, sums_of_symbols},
      {"globals", 4000, globals},
      {"global chain", 4000, global_chain},
      {"open global chain", 4000, open_global_chain},
      {"aliases", 2000, aliases},
      {"open aliases", 2000, open_aliases},
      {"open calls", 2000, open_calls},
      {"names of a function", 2000, names_of_one_function},
      {"closures", 2000, closures},
      {"passed functions", 2000, passed_functions},
      {"function values", 2000, function_values},
      {"types", 2000, types},
      {"constructors", 2000, constructors},
      {"type errors", 4000, type_errors},
  };
  return shapes;
}

}  // namespace headrace::bench
