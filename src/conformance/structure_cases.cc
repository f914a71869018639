#include <algorithm>

#include "conformance/cases.h"

namespace headrace::conformance {

namespace {

using Texts = std::vector<std::string>;

constexpr const char* kSmall = "(3, 4)";

// Returns a program whose parameters have the shapes that belong to them, such as {"x", "(3, 4)"}.
Case structure(const std::string& name, const std::vector<std::pair<std::string, std::string>>& params,
               const std::string& body, Texts constants = {}) {
  std::string list;
  for (const auto& [param, shape] : params)
    list += fmt::format("{}%{}: Tensor[{}, float32]", list.empty() ? "" : ", ", param, shape);
  return {"structure/" + name, fmt::format("def @main({}) {{\n{}\n}}\n", list, body), std::move(constants)};
}

// Returns such a program whose parameters have a letter each and are all small.
Case small_structure(const std::string& name, const std::string& params, const std::string& body,
                     Texts constants = {}) {
  std::vector<std::pair<std::string, std::string>> shaped;
  for (const char param : params) shaped.emplace_back(std::string(1, param), kSmall);
  return structure(name, shaped, body, std::move(constants));
}

// Makes the op on the third line native, so that what is before and what is after it are two regions.
Case apart(Case made) {
  made.native_line = 3;
  return made;
}

std::vector<Case> unary_structures(const std::string& g, const std::string& other) {
  return {
      small_structure("result_is_read", "x", fmt::format("let %a = {0}(%x);\n(%a, {0}(%a))", g)),
      apart(small_structure("two_regions", "x",
                            fmt::format("let %a = {}(%x);\nlet %b = transpose(%a, axes=None);\n{}(%b)", g, other)))};
}

std::vector<Case> binary_structures(const std::string& f) {
  const auto in = [&](const char* text) { return fmt::format(fmt::runtime(text), f); };
  std::string chain;
  for (int i = 0; i < 30; ++i)
    chain +=
        fmt::format("let %v{} = {}(%{}, %{});\n", i, f, i == 0 ? "x" : fmt::format("v{}", i - 1), i % 2 ? "x" : "y");
  return {
      small_structure("value_used_twice", "x", in("{0}({0}(%x, %x), %x)")),
      small_structure("two_constants", "xcd", in("{0}(%c, {0}(%x, %d))"), {"c", "d"}),
      small_structure("constants_against_their_order", "xcd", in("{0}({0}(%d, %x), %c)"), {"c", "d"}),
      small_structure("constant_used_twice", "xc", in("{0}({0}(%x, %c), {0}(%c, %x))"), {"c"}),
      small_structure("three_inputs", "xyz", in("{0}({0}(%z, %x), %y)")),
      small_structure("diamond", "xy", in("let %a = {0}(%x, %y);\n{0}({0}(%a, %x), {0}(%y, %a))")),
      small_structure("two_results", "xy", in("let %a = {0}(%x, %y);\n(%a, {0}(%a, %x))")),
      small_structure("one_result_twice", "xy", in("let %a = {0}(%x, %y);\n(%a, %a)")),
      small_structure("long_chain", "xy", chain + in("{0}(%v29, %y)")),
      apart(small_structure("two_regions_with_constants", "xcd",
                            in("let %a = {0}(%x, %c);\nlet %b = negative(%a);\n{0}(%b, %d)"), {"c", "d"})),
  };
}

// An op with weights whose result has the shape of its data.
struct Layer {
  const char* op;
  const char* data;
  const char* weights;
  const char* attrs;
};

constexpr Layer kLayers[] = {
    {"nn.dense", "(3, 4)", "(4, 4)", ", units=4"},
    {"nn.matmul", "(3, 4)", "(4, 4)", ""},
    {"nn.batch_matmul", "(2, 4, 4)", "(2, 4, 4)", ""},
    {"nn.bias_add", "(3, 4)", "(4,)", ""},
    {"nn.conv1d", "(1, 4, 6)", "(4, 4, 3)", ", kernel_size=[3], channels=4, padding=[1, 1]"},
    {"nn.conv2d", "(1, 4, 5, 6)", "(4, 4, 3, 3)", ", kernel_size=[3, 3], channels=4, padding=[1, 1, 1, 1]"},
};

// Returns chains of a layer with weights w and one with weights v: next to each other, with a native op between them,
// and with `g`, if there is one, after the first.
std::vector<Case> layer_structures(const Layer& layer, const std::string& g) {
  const auto add = [&](const char* what, const std::string& body) {
    return structure(fmt::format("{}/{}", what, layer.op),
                     {{"x", layer.data}, {"w", layer.weights}, {"v", layer.weights}}, body, {"w", "v"});
  };
  const auto call = [&](const char* data, const char* weights) {
    return fmt::format("{}(%{}, %{}{})", layer.op, data, weights, layer.attrs);
  };
  const std::string first = fmt::format("let %a = {};\n", call("x", "w")), last = call("b", "v");
  std::vector<Case> cases{add("two_layers", fmt::format("{}{}", first, call("a", "v"))),
                          apart(add("two_regions", fmt::format("{}let %b = negative(%a);\n{}", first, last))),
                          add("activations", first + "let %b = nn.leaky_relu(%a, alpha=0.25f);\nnn.relu(%b)")};
  if (g.empty()) return cases;
  cases.push_back(add("layers_and_g", fmt::format("{0}let %b = {1}(%a);\nlet %c = {2};\n{1}(%c)", first, g, last)));
  return cases;
}

// A convolution with windows that lie in the padding as a whole, and what libraries compute with it as one.
Case wide_padding() {
  return structure("wide_padding/nn.conv2d", {{"x", "(1, 3, 8, 8)"}, {"w", "(8, 3, 1, 1)"}, {"z", "(1, 8, 10, 8)"}},
                   "let %a = nn.conv2d(%x, %w, kernel_size=[1, 1], channels=8, padding=[1, 0, 1, 0]);\n"
                   "nn.relu(add(%a, %z))",
                   {"w"});
}

}  // namespace

std::vector<Case> structure_cases(const Texts& unary, const Texts& binary) {
  std::vector<Case> cases;
  const auto add = [&](std::vector<Case> more) { std::move(more.begin(), more.end(), std::back_inserter(cases)); };
  if (!binary.empty()) {
    // An op whose operands cannot be exchanged shows constants that were.
    const auto ordered = std::find(binary.begin(), binary.end(), "subtract");
    add(binary_structures(ordered == binary.end() ? binary[0] : *ordered));
  }
  if (!unary.empty()) add(unary_structures(unary.front(), unary.back()));
  if (!unary.empty() && !binary.empty())
    cases.push_back(
        small_structure("mixed", "xc", fmt::format("{1}({0}({1}(%x, %c)), {0}(%x))", unary[0], binary[0]), {"c"}));
  for (const Layer& layer : kLayers) add(layer_structures(layer, unary.empty() ? "" : unary[0]));
  cases.push_back(wide_padding());
  return cases;
}

}  // namespace headrace::conformance
