#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "conformance/cases.h"
#include "conformance/given_cases.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"

namespace headrace::conformance {

namespace {

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

}  // namespace

IRModule module_of(const Case& one) {
  return relay::infer_type(relay::parse_module("#[version = \"0.0.5\"]\n" + one.text, one.name));
}

// Not every op takes every dtype and every pair of shapes.
bool has_type(const Case& one) {
  try {
    module_of(one);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

// The text stands below the line of the version.
std::string native_places(const Case& one) { return fmt::format("*:{}:*", one.native_line + 1); }

std::string shown_program(const Case& one) {
  std::string text = one.text;
  if (one.native_line > 0) text += fmt::format("// the op on line {} is native (--place)\n", one.native_line);
  if (!one.constants.empty()) text += fmt::format("// constants: %{}\n", fmt::join(one.constants, ", %"));
  return text;
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

namespace {

// Two calls that are not variants show an op in other dtypes well enough.
constexpr int kGivenInOtherDtypes = 2;

std::vector<Case> plain_cases() {
  std::vector<Case> cases;
  for (const std::string& op : plain_ops(1)) add_unary_cases(op, cases);
  for (const std::string& op : plain_ops(2)) add_binary_cases(op, cases);
  return cases;
}

// Returns the variants in each dtype, and some of the given calls of each op. A case with a reference stays as it is:
// nodes of ONNX have rules of their own about types.
std::vector<Case> cases_in_dtypes(const std::vector<Case>& variants, const std::vector<Case>& given) {
  std::vector<Case> sources = variants;
  std::map<std::string, int> counts;
  for (const Case& one : given) {
    if (one.text.find("float32") == std::string::npos) continue;
    if (counts[one.name.substr(0, one.name.find('/'))]++ < kGivenInOtherDtypes) sources.push_back(one);
  }
  std::vector<Case> cases;
  for (const Case& one : sources) {
    if (one.text.find("float32") == std::string::npos || !one.reference.empty()) continue;
    for (const char* dtype : kDtypes) {
      if (dtype != std::string_view("float32")) cases.push_back(in_dtype(one, dtype));
    }
  }
  return cases;
}

// Returns a call with default attributes that the type relation takes, if there is one.
std::optional<Case> probe_of(const std::string& op) {
  const std::vector<std::string> arguments[] = {{"%x"}, {"%x", "%y"}, {"(%x, %y)"}, {"%x", "%y", "%z"}};
  for (const char* shape : {"(3, 4)", "(4,)", "()", "(1, 8, 6, 6)", "(1, 3, 8)", "(1, 2, 3, 4, 5)"}) {
    for (const auto& list : arguments) {
      const std::string args = fmt::format("{}", fmt::join(list, ", "));
      std::string params;
      for (const char name : {'x', 'y', 'z'}) {
        if (args.find(name) != std::string::npos)
          params += fmt::format("{}%{}: {}", params.empty() ? "" : ", ", name, tensor(shape, "float32"));
      }
      Case made{.name = op + "/probe",
                .text = fmt::format("def @main({}) {{ {}({}) }}\n", params, op, args),
                .is_probe = true};
      if (has_type(made)) return made;
    }
  }
  return std::nullopt;
}

std::set<std::string> subjects_of(const std::vector<Case>& cases) {
  std::set<std::string> subjects;
  for (const Case& one : cases) subjects.insert(one.name.substr(0, one.name.find('/')));
  return subjects;
}

// Returns the given cases. An op that other cases check in full needs no more than the brief checks in these.
std::vector<Case> given_beside(const std::vector<Case>& others) {
  std::vector<Case> given = given_cases();
  const std::set<std::string> subjects = subjects_of(others);
  for (Case& one : given) one.is_brief |= subjects.contains(one.name.substr(0, one.name.find('/')));
  return given;
}

// Returns the names of the ops that no case is about and that backends are asked about.
std::vector<std::string> ops_without(const std::vector<Case>& cases) {
  const std::set<std::string> subjects = subjects_of(cases);
  std::vector<std::string> names = op_names();
  std::erase_if(names, [&](const std::string& op) { return subjects.contains(op) || !why_no_case(op).empty(); });
  return names;
}

}  // namespace

Case in_dtype(const Case& one, const std::string& dtype) {
  Case made = one;
  made.name = fmt::format("{}/{}", one.name, dtype);
  made.is_brief = true;
  constexpr std::string_view kFloat32 = "float32";
  for (size_t at = 0; (at = made.text.find(kFloat32, at)) != std::string::npos; at += dtype.size())
    made.text.replace(at, kFloat32.size(), dtype);
  return made;
}

std::vector<Case> op_cases(const std::vector<std::string>& patterns) {
  std::vector<Case> cases;
  const auto add = [&](std::vector<Case> more, bool may_be_invalid) {
    for (Case& one : more) {
      if (is_chosen(one.name, patterns) && (!may_be_invalid || has_type(one))) cases.push_back(std::move(one));
    }
  };
  std::vector<Case> all = plain_cases();
  add(all, true);
  std::vector<Case> variants = variant_cases();
  for (Case& one : node_cases()) variants.push_back(std::move(one));
  add(variants, false);
  all.insert(all.end(), variants.begin(), variants.end());
  const std::vector<Case> given = given_beside(all);
  add(given, false);
  add(cases_in_dtypes(variants, given), true);
  all.insert(all.end(), given.begin(), given.end());
  for (const std::string& op : ops_without(all)) {
    if (const std::optional<Case> probe = probe_of(op)) add({*probe}, false);
  }
  return cases;
}

}  // namespace headrace::conformance
