// Tests that the kit's cases cover the ops, their attributes and dtypes, and that each can be computed.
#include "conformance/cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conformance/given_cases.h"
#include "conformance/values.h"
#include "driver/register_all.h"
#include "interp/interp.h"
#include "ir/expr.h"
#include "object/reflect.h"
#include "object/repr.h"
#include "relay/patterns/pattern_text.h"
#include "relay/visit.h"

namespace headrace::conformance {
namespace {

const std::vector<Case>& all_cases() {
  driver::register_all();
  static const std::vector<Case> cases = op_cases();
  return cases;
}

// Visits the calls of ops in all cases.
template <typename F>
void for_each_call(F&& visit) {
  for (const Case& one : all_cases()) {
    relay::post_order(module_of(one)->lookup("main"), [&](const Expr& expr) {
      const auto* call = expr.as<relay::CallNode>();
      if (call != nullptr && call->as_op() != nullptr) visit(one, *call);
    });
  }
}

std::string subject_of(const Case& one) { return one.name.substr(0, one.name.find('/')); }

// Backends are asked about no call of these.
bool needs_no_case(const std::string& op) { return !why_no_case(op).empty(); }

TEST(ConformanceCases, EveryOpHasACase) {
  std::set<std::string> called;
  for_each_call([&](const Case&, const relay::CallNode& call) { called.insert(call.as_op()->name); });
  size_t left_out = 0;
  for (const std::string& op : op_names()) {
    left_out += needs_no_case(op) ? 1 : 0;
    EXPECT_TRUE(called.contains(op) || needs_no_case(op)) << "no case of the conformance kit calls " << op;
  }
  EXPECT_LE(left_out, 8u);
}

TEST(ConformanceCases, NamesDiffer) {
  std::set<std::string> names;
  for (const Case& one : all_cases()) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_TRUE(find_op(subject_of(one))) << one.name;
  }
}

// The first case of an op gets all checks.
TEST(ConformanceCases, EveryOpHasACaseWithAllChecks) {
  std::map<std::string, bool> has_full;
  for (const Case& one : all_cases()) has_full[subject_of(one)] |= !one.is_brief;
  for (const auto& [op, has] : has_full) EXPECT_TRUE(has) << op;
}

// extern.onnx has a reference in place of its own evaluation.
TEST(ConformanceCases, TheInterpreterComputesEachOfThem) {
  for (const Case& one : all_cases()) {
    SCOPED_TRACE(one.name + ": " + one.text);
    const IRModule module = module_of({.name = one.name, .text = one.reference.empty() ? one.text : one.reference});
    std::mt19937 random(17);
    std::vector<NDArray> arguments;
    for (const relay::Var& param : module->lookup("main").cast<relay::FunctionNode>()->params) {
      const auto* type = param->checked_type().as<TensorTypeNode>();
      ASSERT_NE(type, nullptr);
      arguments.push_back(one.values.empty() ? random_tensor(*type, param->name_hint, random)
                                             : given_tensor(*type, one.values[arguments.size()]));
    }
    try {
      EXPECT_FALSE(interp::run_main(module, arguments).empty());
    } catch (const UserError& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

// Attributes with one value in all cases: marks for the compiler itself (on_device, device_copy), those
// that change no result (batch_norm.momentum, roi, name), and rare ones. Remove an attribute here when a case varies
// it; a new op's attributes get cases.
const std::set<std::string>& constant_attributes() {
  static const std::set<std::string> all{"contrib_reverse_reshape.allowzero",
                                         "device_copy.dst_virtual_device",
                                         "device_copy.src_virtual_device",
                                         "extern.onnx.opset",
                                         "gather_nd.index_rank",
                                         "image.crop_and_resize.out_dtype",
                                         "image.resize1d.roi",
                                         "image.resize2d.roi",
                                         "image.resize3d.roi",
                                         "nn.adaptive_avg_pool1d.out_layout",
                                         "nn.adaptive_avg_pool3d.out_layout",
                                         "nn.adaptive_max_pool1d.out_layout",
                                         "nn.adaptive_max_pool3d.out_layout",
                                         "nn.avg_pool1d.out_layout",
                                         "nn.avg_pool2d.out_layout",
                                         "nn.avg_pool2d_grad.ceil_mode",
                                         "nn.avg_pool2d_grad.dilation",
                                         "nn.avg_pool2d_grad.out_layout",
                                         "nn.avg_pool3d.out_layout",
                                         "nn.batch_norm.momentum",
                                         "nn.bitpack.name",
                                         "nn.conv1d.out_layout",
                                         "nn.conv1d_transpose.out_layout",
                                         "nn.conv2d_transpose.out_layout",
                                         "nn.conv3d.out_layout",
                                         "nn.conv3d_transpose.out_layout",
                                         "nn.correlation.layout",
                                         "nn.deformable_conv2d.out_dtype",
                                         "nn.global_avg_pool2d.out_layout",
                                         "nn.global_max_pool2d.out_layout",
                                         "nn.gru.input_forget",
                                         "nn.lstm.linear_before_reset",
                                         "nn.max_pool1d.out_layout",
                                         "nn.max_pool3d.out_layout",
                                         "nn.recurrent_steps.activation_alpha",
                                         "nn.recurrent_steps.activation_beta",
                                         "nn.recurrent_steps.activations",
                                         "nn.recurrent_steps.clip",
                                         "nn.recurrent_steps.input_forget",
                                         "nn.rnn.activation_alpha",
                                         "nn.rnn.activation_beta",
                                         "nn.rnn.input_forget",
                                         "nn.rnn.linear_before_reset",
                                         "nn.space_to_depth.mode",
                                         "on_device.constrain_body",
                                         "on_device.constrain_result",
                                         "on_device.virtual_device",
                                         "qnn.avg_pool2d.dilation",
                                         "qnn.avg_pool2d.out_layout",
                                         "qnn.batch_matmul.out_dtype",
                                         "qnn.conv2d.out_layout",
                                         "qnn.conv2d_transpose.data_layout",
                                         "qnn.conv2d_transpose.dilation",
                                         "qnn.conv2d_transpose.groups",
                                         "qnn.conv2d_transpose.kernel_layout",
                                         "qnn.conv2d_transpose.out_dtype",
                                         "qnn.conv2d_transpose.out_layout",
                                         "random.normal.out_shape",
                                         "random.uniform.out_shape",
                                         "vision.all_class_non_max_suppression.output_format",
                                         "vision.get_valid_counts.id_index",
                                         "vision.get_valid_counts.score_index",
                                         "vision.non_max_suppression.coord_start",
                                         "vision.non_max_suppression.id_index",
                                         "vision.non_max_suppression.score_index",
                                         "vision.roi_pool.layout",
                                         "vision.roi_pool.pooled_size"};
  return all;
}

// Returns the attributes of all ops, "nn.conv2d.strides", that have one value in all cases.
std::set<std::string> attributes_of_one_value() {
  std::map<std::string, std::set<std::string>> values;
  for_each_call([&](const Case&, const relay::CallNode& call) {
    if (!call.attrs) return;
    for (const FieldInfo& field : call.attrs.get()->type_info().fields) {
      auto& seen = values[fmt::format("{}.{}", call.as_op()->name, field.name)];
      seen.insert(repr(field.get(call.attrs.get())));
      if (field.options.has_default) seen.insert(repr(field.options.default_value));
    }
  });
  std::set<std::string> one_value;
  for (const auto& [attribute, seen] : values) {
    if (seen.size() < 2) one_value.insert(attribute);
  }
  return one_value;
}

TEST(ConformanceCases, AttributesVary) {
  const std::set<std::string> found = attributes_of_one_value();
  for (const std::string& one : found) EXPECT_TRUE(constant_attributes().contains(one)) << "no case varies " << one;
  for (const std::string& one : constant_attributes())
    EXPECT_TRUE(found.contains(one)) << one << " varies; it needs no exception";
}

// Returns the dtypes of the first parameters of an op's cases.
std::set<std::string> dtypes_of(const std::string& op) {
  std::set<std::string> dtypes;
  for (const Case& one : all_cases()) {
    if (subject_of(one) != op) continue;
    const auto main = module_of(one)->lookup("main").cast<relay::FunctionNode>();
    dtypes.insert(main->params[0]->checked_type().as<TensorTypeNode>()->dtype.to_string());
  }
  return dtypes;
}

TEST(ConformanceCases, OpsHaveCasesInTheDtypesThatTheyTake) {
  using ::testing::IsSupersetOf;
  for (const char* op : {"nn.conv2d", "nn.dense", "nn.max_pool2d", "sum", "clip", "nn.conv3d", "nn.avg_pool1d"})
    EXPECT_THAT(dtypes_of(op), IsSupersetOf({"float32", "float64", "float16", "int8", "int32", "int64", "uint8"}))
        << op;
  for (const char* op : {"transpose", "concatenate", "reshape", "strided_slice", "gather_nd", "nn.pad"})
    EXPECT_THAT(dtypes_of(op), IsSupersetOf({"float32", "float64", "int8", "int32", "int64", "uint8", "bool"})) << op;
  for (const char* op : {"nn.softmax", "nn.layer_norm", "nn.batch_norm"})
    EXPECT_THAT(dtypes_of(op), IsSupersetOf({"float32", "float64", "float16"})) << op;
}

TEST(ConformanceCases, ACaseInAnotherDtype) {
  const Case one{.name = "cast/x", .text = "def @main(%x: Tensor[(2), float32]) { cast(%x, dtype=\"float32\") }\n"};
  const Case made = in_dtype(one, "int8");
  EXPECT_EQ(made.name, "cast/x/int8");
  EXPECT_EQ(made.text, "def @main(%x: Tensor[(2), int8]) { cast(%x, dtype=\"int8\") }\n");
  EXPECT_TRUE(made.is_brief);
}

TEST(ConformanceCases, ValuesAreRead) {
  const auto elements = [](DataType dtype, std::string_view text) {
    const TensorType type = make_tensor_type(Shape{3}, dtype);
    const NDArray made = given_tensor(*type, text);
    std::vector<double> values;
    for (int64_t i = 0; i < made.num_elements(); ++i) values.push_back(element_as_double(made.tensor(), i));
    return values;
  };
  using Values = std::vector<double>;
  EXPECT_EQ(elements(DataType::parse("float64"), "float32 1 3 0.5 -1.75 nan"), (Values{0.5, -1.75, 1}));
  EXPECT_EQ(elements(DataType::parse("int32"), "float32 1 3 0.25 -1.75 2.0"), (Values{0, -2, 2}));
  EXPECT_EQ(elements(DataType::parse("uint8"), "float32 1 3 0.25 -1.75 2.0"), (Values{0, 2, 2}));
  EXPECT_EQ(elements(DataType::parse("bool"), "float32 1 3 0.25 -1.75 2.0"), (Values{1, 0, 1}));
  EXPECT_EQ(elements(DataType::parse("int32"), "int32 1 3 7 -9 0"), (Values{7, -9, 0}));
}

TEST(ConformanceCases, OtherInputsAreTheFirstOnesReversed) {
  const TensorType floats = make_tensor_type(Shape{3}, DataType::parse("float32"));
  const TensorType ints = make_tensor_type(Shape{2}, DataType::parse("int32"));
  const NDArray made = reversed(given_tensor(*floats, "float32 1 3 1.0 2.0 3.0"));
  EXPECT_EQ(element_as_double(made.tensor(), 0), 3);
  EXPECT_EQ(element_as_double(made.tensor(), 2), 1);
  EXPECT_EQ(element_as_double(reversed(given_tensor(*ints, "int32 1 2 5 6")).tensor(), 0), 5);
}

// The cases of a pattern by their names, for a backend that takes those whose text has `taken` in it.
std::map<std::string, std::string> texts_of_pattern(const std::string& pattern, const std::string& taken) {
  driver::register_all();
  std::map<std::string, std::string> texts;
  const auto is_taken = [&](const Case& one) { return one.text.find(taken) != std::string::npos; };
  for (const Case& one : pattern_cases("x.p", relay::parse_pattern(pattern), is_taken)) {
    EXPECT_TRUE(texts.emplace(one.name, one.text).second) << one.name;
    EXPECT_TRUE(one.is_match) << one.name;
  }
  return texts;
}

TEST(ConformanceCases, APatternIsCheckedWithOtherValuesOfTheAttributesThatItLeavesOpen) {
  using ::testing::HasSubstr;
  const auto texts = texts_of_pattern("nn.relu(add(nn.conv2d(_, const)[attrs groups=1, dilation=[1, 1]], const))",
                                      "%v2: Tensor[(8, 1, 1), float32]");
  ASSERT_TRUE(texts.contains("x.p/nn.conv2d.kernel_layout"));
  EXPECT_EQ(texts.at("x.p/nn.conv2d.kernel_layout"),
            "def @main(%v0: Tensor[(1, 8, 10, 10), float32], %v1: Tensor[(3, 3, 8, 8), float32], "
            "%v2: Tensor[(8, 1, 1), float32]) {\n"
            "  %0 = nn.conv2d(%v0, %v1, groups=1, dilation=[1, 1], kernel_layout=\"HWIO\");\n"
            "  %1 = add(%0, %v2);\n"
            "  %2 = nn.relu(%1);\n"
            "  %2\n"
            "}\n");
  EXPECT_THAT(texts.at("x.p/nn.conv2d.data_layout"), HasSubstr("%v0: Tensor[(1, 10, 10, 8), float32]"));
  EXPECT_THAT(texts.at("x.p/nn.conv2d.out_layout"), HasSubstr("out_layout=\"NHWC\""));
  EXPECT_THAT(texts.at("x.p/nn.conv2d.strides"), HasSubstr("strides=[2, 1]"));
  EXPECT_THAT(texts.at("x.p/nn.conv2d.padding"), HasSubstr("padding=[1, 2]"));
  EXPECT_FALSE(texts.contains("x.p/nn.conv2d.groups"));
  EXPECT_FALSE(texts.contains("x.p/nn.conv2d.dilation"));
}

TEST(ConformanceCases, OtherKindsOfAttributesOfPatterns) {
  using ::testing::HasSubstr;
  const auto conv = texts_of_pattern("nn.bias_add(nn.conv2d(_, const), const)", "(8, 8, 3, 3)");
  EXPECT_THAT(conv.at("x.p/nn.conv2d.groups"), HasSubstr("%v1: Tensor[(8, 4, 3, 3), float32]"));
  EXPECT_THAT(conv.at("x.p/nn.bias_add.axis"), HasSubstr("axis=-1"));
  const auto twice = texts_of_pattern("nn.leaky_relu(nn.leaky_relu(nn.matmul(_, const)))", "(8, 8)");
  EXPECT_THAT(twice.at("x.p/nn.matmul.transpose_b"), HasSubstr("transpose_b=True"));
  EXPECT_THAT(twice.at("x.p/nn.leaky_relu_2.alpha"), HasSubstr("%2 = nn.leaky_relu(%1, alpha=0.375f)"));
  const auto none = texts_of_pattern("nn.softmax(_)", "nothing");
  EXPECT_TRUE(none.contains("x.p/0"));
  EXPECT_FALSE(none.contains("x.p/nn.softmax.axis"));  // nothing is varied in a case that is not taken
}

TEST(ConformanceCases, PatternsChooseCases) {
  EXPECT_TRUE(is_chosen("nn.conv2d/strides/float64", {"nn.dense/*", "*/float64"}));
  EXPECT_FALSE(is_chosen("nn.conv2d/strides", {"nn.dense/*", "*/float64"}));
  EXPECT_TRUE(is_chosen("nn.conv2d/strides", {}));
}

}  // namespace
}  // namespace headrace::conformance
