// Tests constructs of old texts, and that text and builders make equal programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit/errors.h"
#include "object/structural_equal.h"
#include "ops/all_ops.h"
#include "ops/nn/pad.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"

namespace headrace::relay {
namespace {

using testing::HasSubstr;

IRModule read(const std::string& text) {
  ops::register_all_ops();
  return infer_type(parse_module("#[version = \"0.0.5\"]\n" + text));
}

// The call with and without "dyn.": one program.
TEST(OldText, DynamicOpsAreTheOpsThemselves) {
  const std::string params =
      "def @main(%x: Tensor[(2, 3), float32], %i: Tensor[(1, 1, 4, 4), float32], %s: Tensor[(2), int64]) { ";
  for (const std::string call : {
           "reshape(%x, %s)",
           "tile(%x, %s)",
           "broadcast_to(%x, %s)",
           "full(1f, %s, dtype=\"float32\")",
           "ones(%s, dtype=\"float32\")",
           "zeros(%s, dtype=\"float32\")",
           "strided_slice(%x, %s, %s, %s)",
           "nn.pad(%x, const(Tensor[(2, 2), int64], [0, 1, 2, 0]), 0f)",
           "image.resize2d(%i, %s)",
           "image.resize2d(%i, %s, const(Tensor[(4), float32], [0, 0, 1, 1]))",
       }) {
    SCOPED_TRACE(call);
    const IRModule old = read(params + "dyn." + call + " }"), plain = read(params + call + " }");
    EXPECT_TRUE(structural_equal(old, plain));
    EXPECT_EQ(print_module(old).find("dyn."), std::string::npos);
  }
}

// A constant operand becomes an attribute.
TEST(OldText, ConstantOperandsOfDynamicOpsAreAttributes) {
  const std::string params =
      "def @main(%x: Tensor[(2, 1, 3), float32], %i: Tensor[(4), int32], %p: Tensor[(1, 1, 4, 4), float32], "
      "%v: Tensor[(1, 1, 2, 2, 2), float32]) { ";
  for (const auto& [old, plain] : std::vector<std::pair<std::string, std::string>>{
           {"dyn.squeeze(%x, const(Tensor[(1), int64], [1]))", "squeeze(%x, axis=[1])"},
           {"dyn.expand_dims(%x, -1i64, num_newaxis=2)", "expand_dims(%x, axis=-1, num_newaxis=2)"},
           {"dyn.topk(%x, const(Tensor[(1), int64], [2]), axis=2, is_ascend=True)",
            "topk(%x, k=2, axis=2, is_ascend=True)"},
           {"%0 = 3; dyn.one_hot(%i, 1f, 0f, %0, axis=0)", "one_hot(%i, 1f, 0f, depth=3, axis=0)"},
           {"dyn.nn.upsampling(%p, 2, 1.5f, method=\"bilinear\")",
            "nn.upsampling(%p, scale_h=2f, scale_w=1.5f, method=\"bilinear\")"},
           {"dyn.nn.upsampling3d(%v, 2f, 3f, 4f64)", "nn.upsampling3d(%v, scale_d=2f, scale_h=3f, scale_w=4f)"},
       }) {
    SCOPED_TRACE(old);
    EXPECT_TRUE(structural_equal(read(params + old + " }"), read(params + plain + " }")));
  }
}

TEST(OldText, OperandsOfDynamicOpsThatAreNoAttributesAreRefused) {
  const auto error_of = [](const std::string& call) {
    return kit::user_error_of(
        [&] { read("def @main(%x: Tensor[(2, 1), float32], %k: int64) {\n  dyn." + call + "\n}"); });
  };
  for (const auto& [call, message] : std::vector<std::pair<std::string, std::string>>{
           {"topk(%x, %k)",
            "<text>:3:3: dyn.topk takes 'k' as an operand, which is an attribute here: it must be a constant in the "
            "text; "
            "make it one, or write topk(..., k=...)"},
           {"topk(%x)", "dyn.topk takes 2 arguments, got 1"},
           {"topk(%x, 1f)", "'k' as an operand, which is an attribute here: it is of integers, got float32"},
           {"nn.upsampling(%x, True, 1f)",
            "'scale_h' as an operand, which is an attribute here: it is of numbers, got bool"},
           {"expand_dims(%x, const(Tensor[(2), int64], [0, 1]))", "it has one element, got 2"},
           {"squeeze(%x, const(Tensor[(0), int64], []))", "it has no elements"},
           {"topk(%x, 1, k=2)", "the attribute 'k' is given twice"},
       })
    EXPECT_THAT(error_of(call), HasSubstr(message)) << call;
}

TEST(OldText, DynamicOpsOfAnotherFormAreUnknown) {
  for (const char* op : {"dyn.sparse_to_dense", "dyn.exp", "dyn."}) {
    const std::string text = fmt::format("def @main(%x: Tensor[(2), float32]) {{ {}(%x) }}", op);
    EXPECT_THAT(kit::user_error_of([&] { read(text); }), HasSubstr(op));
  }
  EXPECT_THAT(kit::user_error_of([] {
                read(
                    "def @main(%x: Tensor[(1, 1, 2, 2), float32], %s: Tensor[(2), int64]) {\n"
                    "  dyn.image.resize2d(%x, %s, %s, %s)\n}");
              }),
              HasSubstr("takes data, size and roi, got 4 arguments"));
}

// None means that an attribute was not given, as in Relay.
TEST(OldText, NoneIsTheDefaultOfAnAttributeThatTakesNone) {
  const std::string params = "def @main(%x: Tensor[(2, 1), float32]) { ";
  for (const auto& [old, plain] : std::vector<std::pair<std::string, std::string>>{
           {"squeeze(%x, axis=None)", "squeeze(%x)"},
           {"transpose(%x, axes=None)", "transpose(%x)"},
           {"strided_slice(%x, begin=[0], end=[1], strides=[1], axes=None)",
            "strided_slice(%x, begin=[0], end=[1], strides=[1])"},
           {"sum(%x, axis=None)", "sum(%x)"},
       })
    EXPECT_TRUE(structural_equal(read(params + old + " }"), read(params + plain + " }"))) << old;
  EXPECT_THAT(kit::user_error_of([&] { read(params + "reshape(%x, newshape=None) }"); }), HasSubstr("reshaped to ()"));
  EXPECT_THAT(kit::user_error_of([&] { read(params + "squeeze(%x, axes=None) }"); }), HasSubstr("axes"));
}

// Relay's names for packed layouts, and for types of 32 bits.
TEST(OldText, OldNamesAreReadAsTheNamesThatThereAre) {
  const std::string params =
                        "def @main(%x: Tensor[(1, 1, 4, 4, 2), float32], %w: Tensor[(1, 1, 3, 3, 2, 2), float32]) { ",
                    depthwise =
                        "def @main(%x: Tensor[(1, 1, 4, 4, 2), float32], %w: Tensor[(1, 1, 3, 3, 1, 2), float32]) { ",
                    layouts = "data_layout=\"NCHW2c\", kernel_layout=";
  const std::string conv = "(%x, %w, " + layouts + "\"OIHW2i2o\") }",
                    split = "(%x, %w, groups=2, " + layouts + "\"OIHW1i2o\") }";
  EXPECT_TRUE(structural_equal(read(params + "nn.contrib_conv2d_NCHWc" + conv), read(params + "nn.conv2d" + conv)));
  EXPECT_TRUE(structural_equal(read(depthwise + "nn.contrib_depthwise_conv2d_NCHWc" + split),
                               read(depthwise + "nn.conv2d" + split)));
  EXPECT_TRUE(structural_equal(read("def @main(%x: int, %y: Tensor[(2), float], %z: uint) { (%x, %y, %z) }"),
                               read("def @main(%x: int32, %y: Tensor[(2), float32], %z: uint32) { (%x, %y, %z) }")));
}

TEST(OldText, SubgraphsAreThePartsOfACompiler) {
  const auto text = [](const char* begin, const char* end) {
    return fmt::format(
        "def @main(%x: Tensor[(2), float32]) {{ annotation.{}(exp(annotation.{}(%x, compiler=\"a\")), "
        "compiler=\"a\") }}",
        end, begin);
  };
  const IRModule now = read(text("compiler_begin", "compiler_end"));
  for (const char* begin : {"subgraph_begin", "subgraph_start"}) {
    const IRModule old = read(text(begin, "subgraph_end"));
    EXPECT_TRUE(structural_equal(old, now)) << begin;
    EXPECT_THAT(print_module(old), HasSubstr("annotation.compiler_begin")) << begin;
  }
}

TEST(OldText, APadValueIsOfAnyDtype) {
  const IRModule module = read("def @main(%x: Tensor[(2, 3), float32]) { nn.pad(%x, 0, pad_width=[[1, 2], [0, 0]]) }");
  EXPECT_EQ(to_string(module->lookup("main")->checked_type()),
            "fn (Tensor[(2, 3), float32]) -> Tensor[(5, 3), float32]");
  EXPECT_THAT(print_module(module), HasSubstr("nn.pad(%x, 0, pad_width=[[1, 2], [0, 0]])"));
}

TEST(OldText, PadWidthIsOfShapesHoweverItIsMade) {
  const IRModule read_back =
      read("def @main(%x: Tensor[(2, 3), float32]) { nn.pad(%x, 0f, pad_width=[[1, 2], [0, 0]]) }");
  const Var x = make_var("x", make_tensor_type(Shape{2, 3}, DataType::float_(32)));
  const Expr call = ops::pad(x, {Shape{1, 2}, Shape{0, 0}}, make_scalar(0));
  const IRModule made = infer_type(make_module(make_function({x}, call)));
  EXPECT_TRUE(structural_equal(read_back, made));
  EXPECT_EQ(print_module(read_back), print_module(made));
  EXPECT_THAT(print_module(made), HasSubstr("pad_width=[[1, 2], [0, 0]]"));
}

}  // namespace
}  // namespace headrace::relay
