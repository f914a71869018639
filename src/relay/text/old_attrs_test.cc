// Attributes of old text: other spellings, those that ops here lack, virtual devices, words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit/errors.h"
#include "object/structural_equal.h"
#include "object/structural_hash.h"
#include "ops/all_ops.h"
#include "ops/tensor/join.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"

namespace headrace::relay {
namespace {

using testing::HasSubstr;

constexpr const char* kOldHead = "#[version = \"0.0.5\"]\n";

IRModule read_old(const std::string& text, const ParseOptions& options = {}) {
  ops::register_all_ops();
  return infer_type(parse_module(kOldHead + text, "old", options));
}

std::string old_error(const std::string& text, const ParseOptions& options = {}) {
  return kit::user_error_of([&] { read_old(text, options); });
}

using TwoTexts = std::vector<std::pair<std::string, std::string>>;

void expect_same_programs(const std::string& params, const TwoTexts& calls) {
  for (const auto& [old, plain] : calls) {
    SCOPED_TRACE(old);
    const IRModule a = read_old("def @main(" + params + ") { " + old + " }");
    const IRModule b = read_old("def @main(" + params + ") { " + plain + " }");
    EXPECT_TRUE(structural_equal(a, b));
    EXPECT_EQ(structural_hash(a), structural_hash(b));
    EXPECT_EQ(print_module(a), print_module(b));
  }
}

TEST(OldAttrText, SectionsHaveOneForm) {
  expect_same_programs("%x: Tensor[(6), float32]",
                       {{"split(%x, indices_or_sections=[1i64, 2i64])", "split(%x, indices_or_sections=[1, 2])"},
                        {"split(%x, indices_or_sections=(1, 2))", "split(%x, indices_or_sections=[1, 2])"},
                        {"split(%x, indices_or_sections=(1i32, 2i32,))", "split(%x, indices_or_sections=[1, 2])"},
                        {"split(%x, indices_or_sections=shape(1, 2))", "split(%x, indices_or_sections=[1, 2])"},
                        {"split(%x, indices_or_sections=())", "split(%x, indices_or_sections=[])"},
                        {"split(%x, indices_or_sections=3i64)", "split(%x, indices_or_sections=3)"},
                        {"split(%x, indices_or_sections=(3i64))", "split(%x, indices_or_sections=3)"}});
  const Var x = make_var("x", make_tensor_type(Shape{6}, DataType::float_(32)));
  const IRModule made = infer_type(make_module(make_function({x}, ops::split(x, Shape{1, 2}))));
  const IRModule text = read_old("def @main(%x: Tensor[(6), float32]) { split(%x, indices_or_sections=[1i64, 2]) }");
  EXPECT_TRUE(structural_equal(made, text));
  EXPECT_THAT(print_module(text), HasSubstr("indices_or_sections=[1, 2])"));
  EXPECT_FALSE(structural_equal(
      made, read_old("def @main(%x: Tensor[(6), float32]) { split(%x, indices_or_sections=[1, 3]) }")));
}

TEST(OldAttrText, SectionsOfAnotherKindAreRefused) {
  for (const std::string value : {"True", "[True]", "2.5f", "\"2\"", "[1f]", "[[1]]", "None", "?"})
    EXPECT_THAT(old_error("def @main(%x: Tensor[(6), float32]) { split(%x, indices_or_sections=" + value + ") }"),
                HasSubstr("'indices_or_sections'"))
        << value;
}

TEST(OldAttrText, VoidIsADtypeThatIsLeftOut) {
  for (const std::string none : {"\"void\"", "\"\"", "None", "dtype(\"void\")"}) {
    const std::string dtype = "out_dtype=" + none;
    expect_same_programs(
        "%x: Tensor[(1, 2, 4, 4), float32], %w: Tensor[(2, 2, 3, 3), float32], %m: Tensor[(2, 2), float32], "
        "%b: Tensor[(2, 4), float32], %i: Tensor[(2), int32], %t: Tensor[(1, 2, 4), float32]",
        {{"nn.conv2d(%x, %w, " + dtype + ")", "nn.conv2d(%x, %w)"},
         {"nn.conv2d_transpose(%x, %w, " + dtype + ")", "nn.conv2d_transpose(%x, %w)"},
         {"nn.dense(%m, %m, units=None, " + dtype + ")", "nn.dense(%m, %m)"},
         {"nn.matmul(%m, %m, " + dtype + ")", "nn.matmul(%m, %m)"},
         {"nn.batch_matmul(%t, %t, " + dtype + ", transpose_b=True)", "nn.batch_matmul(%t, %t, transpose_b=True)"},
         {"image.resize2d(%x, size=[2, 2], " + dtype + ")", "image.resize2d(%x, size=[2, 2])"},
         {"image.crop_and_resize(%x, %b, %i, crop_size=[2, 2], " + dtype + ")",
          "image.crop_and_resize(%x, %b, %i, crop_size=[2, 2])"},
         {"cumsum(%m, dtype=" + none + ")", "cumsum(%m)"}});
  }
  EXPECT_THAT(old_error("def @main(%x: Tensor[(2), float32]) { cast(%x, dtype=\"void\") }"),
              HasSubstr("cannot cast to void"));
  EXPECT_THAT(old_error("def @main() { zeros(shape=[2], dtype=\"void\") }"), HasSubstr("no tensor has dtype void"));
  EXPECT_THAT(old_error("def @main(%x: Tensor[(2, 2), float32]) { nn.dense(%x, %x, out_dtype=\"vid\") }"),
              HasSubstr("'vid' is not a dtype"));
}

TEST(OldAttrText, FullIsOfItsValuesDtype) {
  expect_same_programs("%v: int8", {{"full(1, shape=[2])", "full(1, shape=[2], dtype=\"int32\")"},
                                    {"full(1i64, shape=[2], dtype=\"void\")", "full(1i64, shape=[2], dtype=\"int64\")"},
                                    {"full(%v, shape=[2], dtype=\"\")", "full(%v, shape=[2], dtype=\"int8\")"},
                                    {"full(1f, shape=[2])", "full(1f, shape=[2], dtype=\"float32\")"}});
  EXPECT_THAT(
      old_error("def @main(%v: int8) {\n  full(negative(%v), shape=[2], dtype=\"void\")\n}"),
      HasSubstr("old:3:3: dtype=\"void\" of full is the dtype of its value, which the text does not say; write"));
}

TEST(OldAttrText, AttributesThatSayNothingAreDropped) {
  expect_same_programs(
      "%x: Tensor[(1, 2, 4, 4), float32], %w: Tensor[(2, 2, 3, 3), float32], %m: Tensor[(2, 2), float32], %n: int32",
      {{"nn.conv2d(%x, %w, auto_scheduler_rewritten_layout=\"\", meta_schedule_original_shape=None)",
        "nn.conv2d(%x, %w)"},
       {"nn.dense(%m, %m, units=2, meta_schedule_original_shape=[])", "nn.dense(%m, %m, units=2)"},
       {"image.resize2d(%x, size=[2, 2], extrapolation_value=0f)", "image.resize2d(%x, size=[2, 2])"},
       {"image.resize2d(%x, size=[2, 2], extrapolation_value=-0.0f64)", "image.resize2d(%x, size=[2, 2])"},
       {"reshape(%m, newshape=[4], reverse=False)", "reshape(%m, newshape=[4])"},
       {"contrib_reverse_reshape(%m, newshape=[4], reverse=True)", "contrib_reverse_reshape(%m, newshape=[4])"},
       {"reshape_like(%m, %m, lhs_begin=0, lhs_end=None, rhs_begin=0i64, rhs_end=nullptr)", "reshape_like(%m, %m)"},
       {"reshape_like(%m, %m, lhs_begin=1, rhs_begin=1)",
        "reshape_like(%m, %m, rhs_begin=1, lhs_begin=1, lhs_end=None)"},
       {"arange(0, 4, 1, start=0, stop=4, step=1i32, dtype=\"int32\")", "arange(0, 4, 1, dtype=\"int32\")"},
       {"arange(0, %n, 1, start=0, stop=7, dtype=\"int32\")", "arange(0, %n, 1, dtype=\"int32\")"},
       {"nn.pad(%m, pad_width=[[1, 1], [0, 0]])", "nn.pad(%m, 0f64, pad_width=[[1, 1], [0, 0]])"},
       {"nn.pad(%m, pad_value=-1.5f, pad_width=[[1, 1], [0, 0]])", "nn.pad(%m, -1.5f64, pad_width=[[1, 1], [0, 0]])"}});
}

TEST(OldAttrText, AttributesThatSaySomethingAreRefused) {
  for (const auto& [call, message] : TwoTexts{
           {"nn.conv2d(%x, %w, auto_scheduler_rewritten_layout=\"8o\")",
            "old:3:3: the attribute 'auto_scheduler_rewritten_layout' of nn.conv2d is accepted only with a value that "
            "has no effect: "
            "it "
            "is a layout that a tuner of TVM gave the weight: write the program before it\n"
            "    nn.conv2d(%x, %w, auto_scheduler_rewritten_layout=\"8o\")\n"
            "    ^^^^^^^^^"},
           {"nn.dense(%m, %m, meta_schedule_original_shape=[2, 2])", "'meta_schedule_original_shape' of nn.dense"},
           {"image.resize2d(%x, size=[2, 2], extrapolation_value=1f)", "write image.crop_and_resize"},
           {"reshape(%m, newshape=[4], reverse=True)", "write contrib_reverse_reshape"},
           {"contrib_reverse_reshape(%m, newshape=[4], reverse=False)", "write reshape"},
           {"arange(0, 4, 1, stop=5, dtype=\"int32\")",
            "'stop' of arange is accepted only with a value that has no effect"},
           {"arange(0, 4, 1, stop=\"4\", dtype=\"int32\")", "it repeats an operand, which says something else"},
           {"nn.pad(%m, pad_value=\"0\", pad_width=[[1, 1], [0, 0]])", "'pad_value' of nn.pad is a number"},
           {"nn.relu(%m, auto_scheduler_rewritten_layout=\"\")", "takes no attributes"},
       })
    EXPECT_THAT(old_error("def @main(%x: Tensor[(1, 2, 4, 4), float32], %w: Tensor[(2, 2, 3, 3), float32], %m: "
                          "Tensor[(2, 2), float32]) {\n  " +
                          call + "\n}"),
                HasSubstr(message))
        << call;
}

TEST(OldAttrText, IndexRankSaysWhatTheTypeOfIndicesDoesNot) {
  const IRModule module = read_old(
      "def @main(%x: Tensor[(3, 4, 5), float32], %i: Tensor[(?, 7), int64]) { gather_nd(%x, %i, index_rank=2) }");
  EXPECT_EQ(to_string(module->lookup("main")->checked_type()),
            "fn (Tensor[(3, 4, 5), float32], Tensor[(?, 7), int64]) -> Tensor[(7, 5), float32]");
  EXPECT_THAT(print_module(module), HasSubstr("gather_nd(%x, %i, index_rank=2)"));
  EXPECT_TRUE(structural_equal(infer_type(parse_module(print_module(module))), module));
  const std::string params = "def @main(%x: Tensor[(3, 4, 5), float32], %i: Tensor[(2, 7), int64]) { ";
  EXPECT_TRUE(structural_equal(read_old(params + "gather_nd(%x, %i, index_rank=None) }"),
                               read_old(params + "gather_nd(%x, %i) }")));
  EXPECT_THAT(old_error(params + "gather_nd(%x, %i, index_rank=3) }"),
              HasSubstr("index_rank is 3, and indices Tensor[(2, 7), int64] name 2 axes"));
  EXPECT_THAT(
      old_error("def @main(%x: Tensor[(3), float32], %i: Tensor[(n, 7), int64]) { gather_nd(%x, %i) }"),
      HasSubstr("the first dimension of indices must be known, by their type or as index_rank: Tensor[(n, 7), int64]"));
  EXPECT_THAT(
      old_error("def @main(%x: Tensor[(3), float32], %i: Tensor[(n, 7), int64]) { gather_nd(%x, %i, index_rank=-1) }"),
      HasSubstr("indices name -1 axes"));
}

TEST(OldAttrText, CommentsNest) {
  EXPECT_TRUE(structural_equal(read_old("/* a /* b */ c /*/ d /**/ */ */ def @main(/* x **/) { 1 }"),
                               read_old("def @main() { 1 }")));
  EXPECT_EQ(old_error("def @main() { 1 } /* a /* b */ c"),
            "old:2:19: this comment does not end; close it with */, and each one within it\n"
            "  def @main() { 1 } /* a /* b */ c\n"
            "                    ^^");
  EXPECT_THAT(old_error("/* a */ */ def @main() { 1 }"), HasSubstr("old:2:9: expected def"));
}

TEST(OldAttrText, CommentsThatArePrintedReadBack) {
  const IRModule typed = read_old("def @main(%x: Tensor[(\"a/*/b\", 3), float32]) { nn.relu(%x) }");
  const std::string shown = print_module(typed, {.show_types = true});
  EXPECT_THAT(shown, HasSubstr("/* ty=Tensor[(\"a/\\x2a\\x2fb\", 3), float32] */"));
  EXPECT_TRUE(structural_equal(parse_module(shown), typed));
  const auto annotate = [](const Expr&) { return " /* a */ /* b */ "; };
  const std::string annotated = print_module(typed, {.annotate = annotate});
  EXPECT_THAT(annotated, HasSubstr("nn.relu(%x) /* a * / / * b */\n"));
  EXPECT_TRUE(structural_equal(parse_module(annotated), typed));
}

TEST(OldAttrText, VirtualDevicesAreTheFunctionsAttributes) {
  const std::string old =
      "def @main(%x {virtual_device=meta[VirtualDevice][1]}: Tensor[(2), float32], %y: Tensor[(2), float32],\n"
      "          virtual_device=meta[VirtualDevice][0]) {\n"
      "  %0 = on_device(%x, virtual_device=meta[VirtualDevice][0], constrain_result=True);\n"
      "  %1 = fn (%a {virtual_device=\"cuda(3)\"}: Tensor[(2), float32], Primitive=1) { exp(%a) };\n"
      "  device_copy(add(%0, %1(%y)), src_virtual_device=meta[VirtualDevice][0], dst_virtual_device=\"cpu:0\")\n"
      "}\n";
  const std::string plain = R"(#[version = "0.0.5"]
def @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32], result_virtual_device="cpu:0", param_virtual_devices=["cuda:1/global", ""]) {
  %0 = on_device(%x, virtual_device="cpu:0", constrain_result=True);
  %1 = fn (%a: Tensor[(2), float32], Primitive=1, param_virtual_devices=["cuda:3"]) {
    exp(%a)
  };
  %2 = %1(%y);
  %3 = add(%0, %2);
  device_copy(%3, src_virtual_device="cpu:0", dst_virtual_device="cpu:0")
}
)";
  const std::vector<std::string> devices{"cpu:0", "cuda:1/global"};
  const IRModule module = read_old(old, {.virtual_devices = &devices});
  EXPECT_EQ(print_module(module), plain);
  EXPECT_TRUE(structural_equal(infer_type(parse_module(plain)), module));
  const std::string block = "#[metadata]\n{\"version\": 1, \"VirtualDevice\": [\"cpu\", \"cuda:1/global\"]}\n";
  EXPECT_TRUE(structural_equal(read_old(old + block), module));
}

TEST(OldAttrText, VirtualDevicesThatAreNoneAreTold) {
  const std::string body = ": Tensor[(2), float32]) { %x }";
  EXPECT_EQ(
      old_error("def @main(%x {virtual_device=meta[VirtualDevice][0]}" + body),
      "old:2:30: there is no virtual device 0: the text has 0 (its #[metadata] block, or init_meta_table in Python, "
      "holds them); or write it out, as in \"cuda:0\"\n"
      "  def @main(%x {virtual_device=meta[VirtualDevice][0]}: Tensor[(2), float32]) { %x }\n"
      "                               ^^^^");
  EXPECT_THAT(old_error("def @main(%x {virtual_device=\"warp:0\"}" + body), HasSubstr("is not a kind of device"));
  EXPECT_THAT(old_error("def @main(%x {virtual_device=3}" + body),
              HasSubstr("a virtual device is meta[VirtualDevice][0] or a text such as \"cuda:0\""));
  EXPECT_THAT(old_error("def @main(%x {device=3}" + body), HasSubstr("expected ')' after parameters, found '{'"));
  EXPECT_THAT(old_error("def @main(%x: int32, virtual_device=\"cpu:0\", result_virtual_device=\"cpu:0\") { %x }"),
              HasSubstr("the attribute 'result_virtual_device' is given twice"));
  EXPECT_THAT(old_error("def @main(%x {virtual_device=\"cpu:0\"}: int32, param_virtual_devices=[\"cpu:0\"]) { %x }"),
              HasSubstr("the attribute 'param_virtual_devices' is given twice"));
  EXPECT_THAT(old_error("def @main() { meta[VirtualDevice][0] }"),
              HasSubstr("a virtual device is the value of an attribute, and no expression"));
  EXPECT_THAT(old_error("def @main() { 1 }\n#[metadata]\n{\"version\": 1, \"VirtualDevice\": [1]}"),
              HasSubstr("\"VirtualDevice\" of the metadata is a list of texts"));
}

TEST(OldAttrText, AWordIsNoValueOfAnAttribute) {
  EXPECT_EQ(
      old_error("def @main(%x: Tensor[(n), float32], Primitive=def1) { %x }"),
      "old:2:47: 'def1' names no dimension of a type before it; a text is written \"def1\", a dimension of its own "
      "def1:int64\n"
      "  def @main(%x: Tensor[(n), float32], Primitive=def1) { %x }\n"
      "                                                ^^^^");
  EXPECT_THAT(old_error("def @main(%x: Tensor[(n), float32]) { sum(%x, keepdims=true) }"),
              HasSubstr("'true' is not a value; a bool is True"));
  EXPECT_THAT(old_error("def @main(%x: Tensor[(n), float32], k=[n, m]) { %x }"), HasSubstr("'m' names no dimension"));
}

TEST(OldAttrText, DimensionsOfAttributesReadBack) {
  const std::string text = R"(#[version = "0.0.5"]
def @main(%x: Tensor[(n, "a b"), float32], k=[n, n + 1, "a b":int64]) {
  %x
}
)";
  EXPECT_EQ(print_module(parse_module(text)), text);
  // One that no type has is of the attribute's own.
  const std::string own = "#[version = \"0.0.5\"]\ndef @main(%x: int32, k=[m:int64, m, {m: 1}], l=m) {\n  %x\n}\n";
  EXPECT_EQ(print_module(parse_module(own)), own);
}

TEST(OldAttrText, ASymbolThatOnlyTheResultHasIsATypeError) {
  EXPECT_THAT(
      old_error("def @main(%x: Tensor[(n), float32]) -> Tensor[(m), float32] { %x }"),
      HasSubstr("the function is annotated to give Tensor[(m), float32] and its body gives Tensor[(n), float32]"));
  EXPECT_THAT(old_error("def @main(%x: Tensor[(?), float32]) -> Tensor[(m), float32] { %x }"),
              HasSubstr("the dimension m in fn (Tensor[(?), float32]) -> Tensor[(m), float32] is bound by no function "
                        "around it"));
}

}  // namespace
}  // namespace headrace::relay
