#include <algorithm>

#include "conformance/cases.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"

namespace headrace::conformance {

namespace {

// An op with attributes: the tensors of a variant ("x (2, 3) w* (4, 3) i (2):int32", where * marks a constant), and its
// call. Parameters whose names begin with p get positive values.
struct Variant {
  const char* name;
  const char* params;
  const char* body;
};

constexpr Variant kVariants[] = {
    {"clip/inner", "x (3, 5)", "clip(%x, a_min=-0.5f, a_max=0.25f)"},
    {"clip/above", "x (3, 5)", "clip(%x, a_min=0f, a_max=6f)"},
    {"nn.leaky_relu/alpha", "x (3, 5)", "nn.leaky_relu(%x, alpha=0.3f)"},
    {"nn.prelu/channels", "x (2, 3, 4) a* (3)", "nn.prelu(%x, %a)"},
    {"cast/to_int", "x (3, 5)", "cast(%x, dtype=\"int32\")"},
    {"cast/from_int", "i (3, 5):int32", "cast(%i, dtype=\"float32\")"},
    {"nn.bias_add/channels", "x (2, 3, 4, 5) b* (3)", "nn.bias_add(%x, %b)"},
    {"nn.bias_add/last", "x (2, 5) b* (5)", "nn.bias_add(%x, %b, axis=-1)"},
    {"nn.bias_add/parameter", "x (2, 3, 4, 5) b (3)", "nn.bias_add(%x, %b)"},
    {"nn.conv1d/padding", "x (2, 3, 9) w* (4, 3, 3)", "nn.conv1d(%x, %w, padding=[1, 2])"},
    {"nn.conv2d/plain", "x (1, 4, 9, 7) w* (6, 4, 3, 3)", "nn.conv2d(%x, %w)"},
    {"nn.conv2d/batch", "x (3, 4, 6, 6) w* (5, 4, 3, 3)", "nn.conv2d(%x, %w)"},
    {"nn.conv2d/one_by_one", "x (1, 8, 5, 5) w* (16, 8, 1, 1)", "nn.conv2d(%x, %w)"},
    {"nn.conv2d/padding", "x (1, 4, 9, 7) w* (6, 4, 3, 3)", "nn.conv2d(%x, %w, padding=[1, 1, 1, 1])"},
    {"nn.conv2d/uneven_padding", "x (1, 4, 9, 7) w* (6, 4, 3, 3)", "nn.conv2d(%x, %w, padding=[0, 1, 2, 3])"},
    {"nn.conv2d/strides", "x (1, 4, 9, 8) w* (6, 4, 3, 3)", "nn.conv2d(%x, %w, strides=[2, 1])"},
    {"nn.conv2d/dilation", "x (1, 4, 9, 9) w* (6, 4, 3, 3)", "nn.conv2d(%x, %w, dilation=[2, 3])"},
    {"nn.conv2d/groups", "x (1, 8, 6, 6) w* (4, 4, 3, 3)", "nn.conv2d(%x, %w, groups=2)"},
    {"nn.conv2d/depthwise", "x (1, 6, 6, 6) w* (6, 1, 3, 3)", "nn.conv2d(%x, %w, groups=6, padding=[1, 1, 1, 1])"},
    {"nn.conv2d/weights_parameter", "x (1, 4, 6, 6) w (6, 4, 3, 3)", "nn.conv2d(%x, %w)"},
    {"nn.conv2d/channels_last", "x (1, 6, 6, 4) w* (3, 3, 4, 6)",
     "nn.conv2d(%x, %w, data_layout=\"NHWC\", kernel_layout=\"HWIO\")"},
    {"nn.conv3d/plain", "x (1, 2, 4, 5, 6) w* (3, 2, 2, 2, 2)", "nn.conv3d(%x, %w)"},
    {"nn.conv2d_transpose/strides", "x (1, 4, 5, 5) w* (4, 3, 3, 3)", "nn.conv2d_transpose(%x, %w, strides=[2, 2])"},
    {"nn.dense/plain", "x (3, 8) w* (5, 8)", "nn.dense(%x, %w)"},
    {"nn.dense/one_row", "x (1, 16) w* (10, 16)", "nn.dense(%x, %w)"},
    {"nn.dense/parameter", "x (3, 8) w (5, 8)", "nn.dense(%x, %w)"},
    {"nn.dense/three_axes", "x (2, 3, 8) w* (5, 8)", "nn.dense(%x, %w)"},
    {"nn.matmul/plain", "x (3, 8) w* (8, 5)", "nn.matmul(%x, %w)"},
    {"nn.matmul/transposed", "x (8, 3) w (5, 8)", "nn.matmul(%x, %w, transpose_a=True, transpose_b=True)"},
    {"nn.batch_matmul/plain", "x (2, 3, 4) y (2, 5, 4)", "nn.batch_matmul(%x, %y)"},
    {"nn.batch_matmul/not_transposed", "x (2, 3, 4) y (2, 4, 5)", "nn.batch_matmul(%x, %y, transpose_b=False)"},
    {"nn.batch_matmul/one_batch", "x (1, 3, 4) y (2, 5, 4)", "nn.batch_matmul(%x, %y)"},
    {"nn.max_pool2d/plain", "x (1, 3, 8, 8)", "nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2])"},
    {"nn.max_pool2d/padding", "x (1, 3, 7, 8)",
     "nn.max_pool2d(%x, pool_size=[3, 3], strides=[2, 1], padding=[1, 0, 1, 2])"},
    {"nn.max_pool2d/ceil", "x (1, 3, 7, 8)", "nn.max_pool2d(%x, pool_size=[3, 2], strides=[2, 3], ceil_mode=True)"},
    {"nn.max_pool2d/dilation", "x (1, 3, 9, 9)", "nn.max_pool2d(%x, pool_size=[2, 2], dilation=[2, 3])"},
    {"nn.avg_pool2d/plain", "x (1, 3, 8, 8)", "nn.avg_pool2d(%x, pool_size=[2, 2], strides=[2, 2])"},
    {"nn.avg_pool2d/padding", "x (1, 3, 7, 8)", "nn.avg_pool2d(%x, pool_size=[3, 3], padding=[1, 1, 1, 1])"},
    {"nn.avg_pool2d/counted_padding", "x (1, 3, 7, 8)",
     "nn.avg_pool2d(%x, pool_size=[3, 3], padding=[1, 0, 1, 1], count_include_pad=True)"},
    {"nn.avg_pool2d/ceil", "x (1, 3, 7, 8)", "nn.avg_pool2d(%x, pool_size=[3, 3], strides=[2, 2], ceil_mode=True)"},
    {"nn.avg_pool2d/ceil_and_counted", "x (1, 3, 6, 8)",
     "nn.avg_pool2d(%x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1], ceil_mode=True, "
     "count_include_pad=True)"},
    {"nn.global_max_pool2d/plain", "x (2, 3, 5, 4)", "nn.global_max_pool2d(%x)"},
    {"nn.global_avg_pool2d/plain", "x (2, 3, 5, 4)", "nn.global_avg_pool2d(%x)"},
    {"nn.adaptive_avg_pool2d/uneven", "x (1, 3, 7, 8)", "nn.adaptive_avg_pool2d(%x, output_size=[3, 4])"},
    {"nn.softmax/last", "x (3, 5)", "nn.softmax(%x)"},
    {"nn.softmax/first", "x (3, 5, 2)", "nn.softmax(%x, axis=0)"},
    {"nn.softmax/middle", "x (3, 5, 2)", "nn.softmax(%x, axis=1)"},
    {"nn.log_softmax/last", "x (3, 5)", "nn.log_softmax(%x)"},
    {"nn.layer_norm/last", "x (3, 8) g* (8) b* (8)", "nn.layer_norm(%x, %g, %b, epsilon=0.001f)"},
    {"nn.lrn/plain", "x (1, 6, 4, 4)", "nn.lrn(%x, size=3, alpha=0.5f, beta=0.6f, bias=1.5f)"},
    {"concatenate/two", "x (2, 3) y (2, 4)", "concatenate((%x, %y), axis=1)"},
    {"concatenate/three", "x (2, 3, 2) y (1, 3, 2) z (3, 3, 2)", "concatenate((%x, %y, %z), axis=0)"},
    {"concatenate/twice_one", "x (2, 3)", "concatenate((%x, %x), axis=-1)"},
    {"concatenate/constant", "x (2, 3) c* (2, 2)", "concatenate((%x, %c), axis=1)"},
    {"split/equal", "x (2, 6)", "let %s = split(%x, indices_or_sections=3, axis=1); (%s.2, %s.0)"},
    {"split/at_places", "x (2, 6)", "let %s = split(%x, indices_or_sections=[1, 4], axis=1); (%s.0, %s.1, %s.2)"},
    {"reshape/plain", "x (2, 6)", "reshape(%x, newshape=[3, 4])"},
    {"reshape/rest", "x (2, 3, 4)", "reshape(%x, newshape=[0, -1])"},
    {"nn.batch_flatten/plain", "x (2, 3, 4)", "nn.batch_flatten(%x)"},
    {"squeeze/axis", "x (2, 1, 3, 1)", "squeeze(%x, axis=[1])"},
    {"expand_dims/inner", "x (2, 3)", "expand_dims(%x, axis=1, num_newaxis=2)"},
    {"transpose/reversed", "x (2, 3, 4)", "transpose(%x)"},
    {"transpose/cycled", "x (2, 3, 4)", "transpose(%x, axes=[2, 0, 1])"},
    {"transpose/inner", "x (2, 3, 4, 5)", "transpose(%x, axes=[0, 2, 1, 3])"},
    {"strided_slice/steps", "x (5, 6)", "strided_slice(%x, begin=[1, 0], end=[5, 6], strides=[2, 3])"},
    {"nn.pad/value", "x (2, 3)", "nn.pad(%x, 1.5f, pad_width=[[1, 0], [2, 1]])"},
    {"sum/inner", "x (2, 3, 4)", "sum(%x, axis=[1])"},
    {"sum/kept", "x (2, 3, 4)", "sum(%x, axis=[0, 2], keepdims=True)"},
    {"mean/spatial", "x (2, 3, 4, 5)", "mean(%x, axis=[2, 3], keepdims=True)"},
    {"max/last", "x (2, 3, 4)", "max(%x, axis=[-1])"},
    {"min/all", "x (2, 3)", "min(%x)"},
    {"prod/excluded", "x (2, 3, 4)", "prod(%x, axis=[1], exclude=True)"},
    {"argmax/axis", "x (2, 5)", "argmax(%x, axis=[1])"},
    {"take/rows", "x (5, 3) i* (2):int32", "take(%x, %i, axis=0)"},
    {"where/plain", "c (2, 3):bool x (2, 3) y (2, 3)", "where(%c, %x, %y)"},
    {"tile/plain", "x (2, 3)", "tile(%x, reps=[2, 2])"},
    {"repeat/axis", "x (2, 3)", "repeat(%x, repeats=2, axis=1)"},
    {"stack/inner", "x (2, 3) y (2, 3)", "stack((%x, %y), axis=1)"},
    {"cumsum/axis", "x (2, 5)", "cumsum(%x, axis=1)"},
    {"image.resize2d/linear", "x (1, 2, 4, 4)",
     "image.resize2d(%x, size=[6, 7], method=\"linear\", coordinate_transformation_mode=\"half_pixel\")"},
    {"image.resize2d/nearest", "x (1, 2, 4, 4)", "image.resize2d(%x, size=[8, 8], method=\"nearest_neighbor\")"},
};

// Reads "x (2, 3) w* (4):int32" as parameters of a program, and the constants among them.
Case case_of(const Variant& variant) {
  Case made{.name = variant.name, .text = "def @main("};
  const std::string spec = variant.params;
  for (size_t at = 0; at < spec.size();) {
    const size_t open = spec.find('(', at), close = spec.find(')', open);
    std::string name = spec.substr(at, open - at - 1);
    if (name.ends_with('*')) {
      name.pop_back();
      made.constants.push_back(name);
    }
    std::string shape = spec.substr(open, close + 1 - open), dtype = "float32";
    at = close + 1;
    if (at < spec.size() && spec[at] == ':') {
      const size_t end = std::min(spec.find(' ', at), spec.size());
      dtype = spec.substr(at + 1, end - at - 1);
      at = end;
    }
    if (shape.find(',') == std::string::npos && shape != "()") shape.insert(shape.size() - 1, ",");
    made.text += fmt::format("{}%{}: Tensor[{}, {}]", made.text.ends_with('(') ? "" : ", ", name, shape, dtype);
    while (at < spec.size() && spec[at] == ' ') ++at;
  }
  made.text += fmt::format(") {{ {} }}\n", variant.body);
  return made;
}

std::string tensor(const std::string& shape, const std::string& dtype) {
  return fmt::format("Tensor[{}, {}]", shape, dtype);
}

// A call of an op on parameters of one dtype.
Case plain_case(const std::string& op, const std::string& what, const std::vector<std::string>& shapes,
                const std::string& dtype, std::vector<std::string> constants = {}) {
  std::string params, args;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::string name(1, static_cast<char>('x' + static_cast<char>(i)));
    params += fmt::format("{}%{}: {}", i == 0 ? "" : ", ", name, tensor(shapes[i], dtype));
    args += fmt::format("{}%{}", i == 0 ? "" : ", ", name);
  }
  return {.name = fmt::format("{}/{}", op, what),
          .text = fmt::format("def @main({}) {{ {}({}) }}\n", params, op, args),
          .constants = std::move(constants)};
}

constexpr const char* kDtypes[] = {"float32", "float64", "float16", "int8", "int32", "int64", "uint8", "bool"};

void add_unary_cases(const std::string& op, std::vector<Case>& cases) {
  for (const char* dtype : kDtypes) cases.push_back(plain_case(op, dtype, {"(3, 5)"}, dtype));
  cases.push_back(plain_case(op, "scalar", {"()"}, "float32"));
  cases.push_back(plain_case(op, "one_element", {"(1,)"}, "float32"));
  cases.push_back(plain_case(op, "large", {"(2, 3, 17, 19)"}, "float32"));
  cases.push_back(plain_case(op, "empty", {"(0, 3)"}, "float32"));
}

void add_binary_cases(const std::string& op, std::vector<Case>& cases) {
  for (const char* dtype : kDtypes) cases.push_back(plain_case(op, dtype, {"(3, 5)", "(3, 5)"}, dtype));
  cases.push_back(plain_case(op, "scalars", {"()", "()"}, "float32"));
  cases.push_back(plain_case(op, "broadcast_row", {"(3, 5)", "(5,)"}, "float32"));
  cases.push_back(plain_case(op, "broadcast_column", {"(3, 5)", "(3, 1)"}, "float32"));
  cases.push_back(plain_case(op, "broadcast_first", {"(1, 5)", "(3, 5)"}, "float32"));
  cases.push_back(plain_case(op, "broadcast_both", {"(3, 1)", "(1, 5)"}, "float32"));
  cases.push_back(plain_case(op, "channels", {"(2, 3, 4, 5)", "(3, 1, 1)"}, "float32"));
  cases.push_back(plain_case(op, "constant_second", {"(3, 5)", "(3, 5)"}, "float32", {"y"}));
  cases.push_back(plain_case(op, "constant_first", {"(3, 5)", "(3, 5)"}, "float32", {"x"}));
  cases.push_back(plain_case(op, "large", {"(2, 3, 17, 19)", "(2, 3, 17, 19)"}, "float32"));
  cases.push_back({.name = op + "/twice_one",
                   .text = fmt::format("def @main(%x: {}) {{ {}(%x, %x) }}\n", tensor("(3, 5)", "float32"), op)});
}

// Not every op takes every dtype and every pair of shapes.
bool is_valid(const Case& one) {
  try {
    module_of(one);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace

IRModule module_of(const Case& one) {
  return relay::infer_type(relay::parse_module("#[version = \"0.0.5\"]\n" + one.text, one.name));
}

std::vector<std::string> plain_ops(int num_inputs) {
  std::vector<std::string> names;
  for (const std::string& name : op_names()) {
    const Op op = find_op(name);
    if (!op || op->num_inputs != num_inputs || !op->attrs_type_key.empty()) continue;
    std::vector<Case> cases;
    num_inputs == 1 ? add_unary_cases(name, cases) : add_binary_cases(name, cases);
    try {
      const IRModule module = module_of(cases[0]);
      const Type& type = module->lookup("main").as<relay::FunctionNode>()->body->checked_type();
      if (type.is<TensorTypeNode>()) names.push_back(name);
    } catch (const UserError&) {  // not an op of tensors of one shape
    }
  }
  return names;
}

namespace {

// Nodes of ONNX models of opset 13, in base64, beside ops that compute the same.
struct NodeCase {
  const char* op;
  const char* node;
  const char* inputs;
  const char* results;
  const char* reference;
};
constexpr NodeCase kNodeCases[] = {
    {"Exp", "CgF4EgF5IgNFeHA=", "%x,", "\"float32[3,4]\"", "exp(%x)"},
    {"Add", "CgF4CgF5EgF6IgNBZGQ=", "%x, %y", "\"float32[3,4]\"", "add(%x, %y)"},
    {"Softmax", "CgF4EgF5IgdTb2Z0bWF4KgsKBGF4aXMYAKABAg==", "%x,", "\"float32[3,4]\"", "nn.softmax(%x, axis=0)"},
    {"Split", "CgF4EgF5EgF6IgVTcGxpdCoLCgRheGlzGAGgAQI=", "%x,", "\"float32[3,2]\", \"float32[3,2]\"",
     "%0 = split(%x, indices_or_sections=2, axis=1); (%0.0, %0.1)"},
};

std::vector<Case> node_cases() {
  std::vector<Case> cases;
  for (const NodeCase& one : kNodeCases) {
    const bool has_two = std::string_view(one.inputs).find('y') != std::string_view::npos;
    const auto program = [&](const std::string& body) {
      return fmt::format("def @main(%x: Tensor[(3, 4), float32]{}) {{ {} }}\n",
                         has_two ? ", %y: Tensor[(3, 4), float32]" : "", body);
    };
    const std::string call = fmt::format("extern.onnx(({}), node=\"{}\", op=\"{}\", opset=13, results=[{}])",
                                         one.inputs, one.node, one.op, one.results);
    cases.push_back(
        {.name = fmt::format("extern.onnx/{}", one.op), .text = program(call), .reference = program(one.reference)});
  }
  return cases;
}

}  // namespace

std::vector<Case> op_cases() {
  std::vector<Case> cases;
  for (const std::string& op : plain_ops(1)) add_unary_cases(op, cases);
  for (const std::string& op : plain_ops(2)) add_binary_cases(op, cases);
  std::erase_if(cases, [](const Case& one) { return !is_valid(one); });
  for (const Variant& variant : kVariants) cases.push_back(case_of(variant));
  for (Case& one : node_cases()) cases.push_back(std::move(one));
  return cases;
}

std::vector<Case> structure_cases(const std::vector<std::string>& unary, const std::vector<std::string>& binary) {
  std::vector<Case> cases;
  const auto add = [&](const std::string& name, const std::string& params, const std::string& body,
                       std::vector<std::string> constants = {}) {
    std::string list;
    for (const char param : params)
      list += fmt::format("{}%{}: Tensor[(3, 4), float32]", list.empty() ? "" : ", ", param);
    cases.push_back({"structure/" + name, fmt::format("def @main({}) {{\n{}\n}}\n", list, body), std::move(constants)});
  };
  if (!binary.empty()) {
    // An op whose operands cannot be exchanged shows constants that were.
    const auto ordered = std::find(binary.begin(), binary.end(), "subtract");
    const std::string f = ordered == binary.end() ? binary[0] : *ordered;
    add("value_used_twice", "x", fmt::format("{0}({0}(%x, %x), %x)", f));
    add("two_constants", "xcd", fmt::format("{0}(%c, {0}(%x, %d))", f), {"c", "d"});
    add("constants_against_their_order", "xcd", fmt::format("{0}({0}(%d, %x), %c)", f), {"c", "d"});
    add("constant_used_twice", "xc", fmt::format("{0}({0}(%x, %c), {0}(%c, %x))", f), {"c"});
    add("three_inputs", "xyz", fmt::format("{0}({0}(%z, %x), %y)", f));
    add("diamond", "xy", fmt::format("let %a = {0}(%x, %y);\n{0}({0}(%a, %x), {0}(%y, %a))", f));
    add("two_results", "xy", fmt::format("let %a = {0}(%x, %y);\n(%a, {0}(%a, %x))", f));
    add("one_result_twice", "xy", fmt::format("let %a = {0}(%x, %y);\n(%a, %a)", f));
    std::string chain;
    for (int i = 0; i < 30; ++i)
      chain +=
          fmt::format("let %v{} = {}(%{}, %{});\n", i, f, i == 0 ? "x" : fmt::format("v{}", i - 1), i % 2 ? "x" : "y");
    add("long_chain", "xy", chain + fmt::format("{}(%v29, %y)", f));
  }
  if (!unary.empty()) {
    add("result_is_read", "x", fmt::format("let %a = {0}(%x);\n(%a, {0}(%a))", unary[0]));
    add("two_regions", "x", fmt::format("({0}(%x), {0}(negative(%x)))", unary[0]));
    cases.back().free_op = "negative";
  }
  if (!unary.empty() && !binary.empty())
    add("mixed", "xc", fmt::format("{1}({0}({1}(%x, %c)), {0}(%x))", unary[0], binary[0]), {"c"});
  return cases;
}

}  // namespace headrace::conformance
