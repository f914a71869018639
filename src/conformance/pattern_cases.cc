#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "conformance/cases.h"
#include "conformance/pattern_program.h"
#include "object/reflect.h"

namespace headrace::conformance {

namespace {

constexpr size_t kMaxTries = 4000, kMaxShapes = 24;

// Shapes that parameters of most ops may have: images, weights of convolutions and dense layers, channels, a scalar.
// A convolution of the image by the weights is as high and as wide as it has channels: an axis that is taken for
// another one still fits.
const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all{{1, 8, 10, 10}, {8, 8, 3, 3}, {3, 8}, {8, 8}, {8}, {8, 1, 1}, {}};
  return all;
}

// A program with shapes that fit its ops.
struct Shaped {
  Case made;
  std::vector<Shape> shapes;
};

std::vector<Shaped> shaped_cases(const std::string& name, const PatternProgram& program) {
  std::vector<Shaped> cases;
  const size_t num_params = program.params.size();
  std::vector<size_t> choice(num_params, 0);
  for (size_t tries = 0; tries < kMaxTries && cases.size() < kMaxShapes; ++tries) {
    std::vector<Shape> chosen;
    for (const size_t i : choice) chosen.push_back(shapes()[i]);
    Case made{.name = fmt::format("{}/{}", name, cases.size()),
              .text = text_of(program, chosen),
              .constants = program.constants,
              .is_match = true};
    if (has_type(made)) cases.push_back({std::move(made), std::move(chosen)});
    size_t digit = 0;
    while (digit < num_params && ++choice[digit] == shapes().size()) choice[digit++] = 0;
    if (digit == num_params) break;
  }
  return cases;
}

// Another value of an attribute, and how the shape of an operand follows it.
struct Change {
  std::string value;
  size_t operand = 0;
  std::function<Shape(const Shape&)> reshape = {};  // null: the shapes stay
};

// Returns the layout with channels last, or with the channels of weights last.
std::string channels_last(const std::string& layout) {
  const bool is_of_weights = layout.find('O') != std::string::npos;
  if (is_of_weights) return layout.substr(2) + "IO";
  const size_t channels = layout.find('C');
  return layout.substr(0, channels) + layout.substr(channels + 1) + "C";
}

// Returns a shape in another layout; as it is where it has another rank.
Shape permuted(const Shape& shape, const std::string& from, const std::string& to) {
  Shape made = shape;
  for (size_t i = 0; i < to.size() && shape.size() == to.size(); ++i) made[i] = shape[from.find(to[i])];
  return made;
}

// Returns weights whose input channels are those of one of two groups.
Shape of_two_groups(const Shape& weights) {
  Shape made = weights;
  if (made.size() > 2) made[1] /= 2;
  return made;
}

Change layout_change(const std::string& usual, size_t operand) {
  const std::string layout = channels_last(usual);
  return {fmt::format("\"{}\"", layout), operand,
          [usual, layout](const Shape& shape) { return permuted(shape, usual, layout); }};
}

std::optional<Change> text_change(const std::string& attribute, const std::string& usual, const std::string& data) {
  const size_t num_letters = usual.size();
  if (attribute == "kernel_layout" && num_letters >= 3) return layout_change(usual, 1);
  if ((attribute == "data_layout" || attribute == "layout") && num_letters >= 3 && usual.find('C') == 1)
    return layout_change(usual, 0);
  if (attribute == "out_layout" && !data.empty()) return Change{fmt::format("\"{}\"", channels_last(data))};
  return std::nullopt;
}

std::optional<Change> list_change(const std::string& attribute, size_t count) {
  std::string items;
  for (size_t i = 0; i < count; ++i) {
    const size_t item = attribute == "padding" ? i + 1 : i == 0 ? 2 : 1;
    items += fmt::format("{}{}", items.empty() ? "" : ", ", item);
  }
  const bool is_known = attribute == "padding" || attribute == "strides" || attribute == "dilation";
  if (!is_known || count == 0) return std::nullopt;
  return Change{fmt::format("[{}]", items)};
}

// Returns another value of an attribute that has `usual` by default. `data`: the default layout of the op's data.
std::optional<Change> change_of(const std::string& attribute, const Value& usual, const std::string& data) {
  if (usual.type_index() == type_index::kBool) return Change{usual.as<bool>() ? "False" : "True"};
  if (usual.is<Shape>()) return list_change(attribute, usual.as<Shape>().size());
  if (usual.is<std::string>()) return text_change(attribute, usual.as<std::string>(), data);
  if (attribute == "axis") return Change{usual.is_none() ? "[0]" : usual.as<int64_t>() < 0 ? "0" : "-1"};
  if (attribute == "groups") return Change{"2", 1, &of_two_groups};
  if (usual.type_index() == type_index::kFloat) return Change{fmt::format("{}f", usual.as<double>() + 0.125)};
  return std::nullopt;
}

// Returns null for an op without attributes.
const TypeInfo* attributes_of(const std::string& op) { return find_type(find_op(op)->attrs_type_key); }

std::string data_layout_of(const TypeInfo& attributes) {
  for (const FieldInfo& field : attributes.fields) {
    const bool is_of_data = field.name == "data_layout" || field.name == "layout";
    if (is_of_data && field.options.default_value.is<std::string>())
      return field.options.default_value.as<std::string>();
  }
  return "";
}

// Returns how many different shapes a case has.
size_t num_different(const Shaped& one) { return std::set<Shape>(one.shapes.begin(), one.shapes.end()).size(); }

// Returns the first case of the shapes that fits a changed attribute of one call.
std::optional<Case> changed_case(const std::string& name, const PatternProgram& program, size_t call,
                                 const std::string& attribute, const Change& change, const std::vector<Shaped>& taken) {
  PatternProgram changed = program;
  changed.calls[call].attrs += fmt::format(", {}={}", attribute, change.value);
  const std::vector<std::string>& args = program.calls[call].args;
  for (const Shaped& one : taken) {
    std::vector<Shape> shapes = one.shapes;
    for (size_t i = 0; change.reshape && change.operand < args.size() && i < shapes.size(); ++i) {
      if (args[change.operand] == "%" + program.params[i]) shapes[i] = change.reshape(shapes[i]);
    }
    Case made{.name = name,
              .text = text_of(changed, shapes),
              .constants = program.constants,
              .is_brief = true,
              .is_match = true};
    if (has_type(made)) return made;
  }
  return std::nullopt;
}

// Returns a name for each call: its op, with a number from the second call of the op on.
std::vector<std::string> names_of_calls(const PatternProgram& program) {
  std::vector<std::string> names;
  for (const MadeCall& call : program.calls) {
    const auto is_same = [&](const MadeCall& other) { return other.op == call.op; };
    const auto before = program.calls.begin() + static_cast<std::ptrdiff_t>(names.size());
    const auto count = std::count_if(program.calls.begin(), before, is_same);
    names.push_back(count == 0 ? call.op : fmt::format("{}_{}", call.op, count + 1));
  }
  return names;
}

// Returns a case for each attribute of a call that the pattern leaves open.
std::vector<Case> changed_cases(const std::string& name, const PatternProgram& program,
                                const std::vector<Shaped>& taken) {
  std::vector<Case> cases;
  const std::vector<std::string> calls = names_of_calls(program);
  for (size_t i = 0; i < program.calls.size(); ++i) {
    const TypeInfo* attributes = attributes_of(program.calls[i].op);
    if (attributes == nullptr) continue;
    for (const FieldInfo& field : attributes->fields) {
      if (!field.options.has_default || program.calls[i].given_attrs.contains(field.name)) continue;
      const auto change = change_of(field.name, field.options.default_value, data_layout_of(*attributes));
      if (!change) continue;
      const std::string its_name = fmt::format("{}/{}.{}", name, calls[i], field.name);
      if (auto made = changed_case(its_name, program, i, field.name, *change, taken)) cases.push_back(std::move(*made));
    }
  }
  return cases;
}

// Returns a case of two matches: the second reads the first's result where the shapes let it, or stands beside it.
std::optional<Case> twice(const std::string& name, const PatternProgram& program, const Shaped& one) {
  const auto is_constant = [&](size_t param) {
    return std::count(program.constants.begin(), program.constants.end(), program.params[param]) > 0;
  };
  const auto made_of = [&](std::optional<size_t> joined) {
    const PatternProgram both = doubled(program, joined);
    std::vector<Shape> shapes = one.shapes;
    for (size_t i = 0; i < one.shapes.size(); ++i) {
      if (joined != i) shapes.push_back(one.shapes[i]);
    }
    return Case{.name = name + "/two_matches",
                .text = text_of(both, shapes),
                .constants = both.constants,
                .is_brief = true,
                .is_match = true};
  };
  for (size_t i = 0; i < program.params.size(); ++i) {
    if (is_constant(i)) continue;
    if (Case made = made_of(i); has_type(made)) return made;
  }
  if (Case made = made_of(std::nullopt); has_type(made)) return made;
  return std::nullopt;
}

}  // namespace

std::vector<Case> pattern_cases(const std::string& name, const relay::DFPattern& pattern,
                                const std::function<bool(const Case&)>& is_taken) {
  const std::optional<PatternProgram> program = program_of(pattern);
  if (!program) return {};
  std::vector<Case> cases;
  std::vector<Shaped> taken;
  for (Shaped& one : shaped_cases(name, *program)) {
    cases.push_back(one.made);
    if (is_taken(one.made)) taken.push_back(std::move(one));
  }
  // An image is a better operand for weights than an image that stands for them.
  const auto has_more = [](const Shaped& a, const Shaped& b) { return num_different(a) > num_different(b); };
  std::stable_sort(taken.begin(), taken.end(), has_more);
  for (Case& one : changed_cases(name, *program, taken)) cases.push_back(std::move(one));
  if (taken.empty()) return cases;
  if (std::optional<Case> made = twice(name, *program, taken.front())) cases.push_back(std::move(*made));
  return cases;
}

}  // namespace headrace::conformance
