// Type errors show the line of the text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit/errors.h"
#include "ops/all_ops.h"
#include "ops/tensor/broadcast.h"
#include "relay/infer/infer_type.h"
#include "relay/infer/shown_places.h"
#include "relay/text/parse.h"

namespace headrace::relay {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kLine1 = "#[version = \"0.0.5\"]\n";

IRModule read_shown(const std::string& text) {
  ops::register_all_ops();
  return parse_module(kLine1 + text, "net.relay");
}

std::string shown_error(const std::string& text) {
  const IRModule module = read_shown(text);
  try {
    infer_type(module);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(ShownPlaces, OneError) {
  EXPECT_EQ(shown_error("def @main(%x: Tensor[(2, 3), float32]) {\n"
                        "  %0 = nn.relu(%x);\n"
                        "  nn.dense(%0, transpose(%0))\n"
                        "}\n"),
            "nn.dense: the summed dimensions 3 and 2 differ: Tensor[(2, 3), float32] (transposed: false) and "
            "Tensor[(3, 2), float32] (transposed: true)\n"
            "  at: nn.dense\n"
            "  in: net.relay:4:3\n"
            "      nn.dense(%0, transpose(%0))\n"
            "      ^^^^^^^^^^^^^^^^^^^^^^^^^^^");
}

TEST(ShownPlaces, TheFieldsOfTheErrorStayAsTheyAre) {
  const IRModule module = read_shown("def @main(%x: Tensor[(2), float32]) { sum(%x, axis=[3]) }");
  try {
    infer_type(module);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.where().op, "sum");
    EXPECT_EQ(error.where().place, "net.relay:2:39");
  }
}

TEST(ShownPlaces, ManyErrorsEachWithItsLineOnce) {
  EXPECT_EQ(shown_error("def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(4), float32]) {\n"
                        "  (add(%x, %y),\n"
                        "   %x.0)\n"
                        "}\n"
                        "def @f(%x: Tensor[(2), float32]) -> int32 { if (%x) { 1 } else { 2 } }\n"),
            "3 type errors:\n"
            "  add: shapes (2, 3) and (4) cannot be broadcast: axis 1 is 3 and 4\n"
            "  at: add\n"
            "  in: net.relay:3:4\n"
            "      (add(%x, %y),\n"
            "       ^^^^^^^^^^^\n"
            "  item 0 is taken of a value that is not a tuple: Tensor[(2, 3), float32]\n"
            "  in: net.relay:4:4\n"
            "       %x.0)\n"
            "       ^^^^\n"
            "  the condition is Tensor[(2), float32], expected a bool scalar\n"
            "  at: if\n"
            "  in: net.relay:6:45\n"
            "    def @f(%x: Tensor[(2), float32]) -> int32 { if (%x) { 1 } else { 2 } }\n"
            "                                                ^^^^^^^^^^^^^^^^^^^^^^^^");
}

TEST(ShownPlaces, AFunctionIsMarkedToTheEndOfItsLine) {
  EXPECT_EQ(shown_error("def @main(%x: Tensor[(n), float32]) -> Tensor[(m), float32] {\n  %x\n}"),
            "the function is annotated to give Tensor[(m), float32] and its body gives Tensor[(n), float32]\n"
            "  in: net.relay:2:1\n"
            "    def @main(%x: Tensor[(n), float32]) -> Tensor[(m), float32] {\n"
            "    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^");
}

TEST(ShownPlaces, AConstructorOfATypeDefinition) {
  EXPECT_EQ(shown_error("type Box[A] { Full(A, Box), }\ndef @main() { 1 }"),
            "field 1 must be a type, and Box is a adt_handle\n"
            "  at: Full\n"
            "  in: net.relay:2:15\n"
            "    type Box[A] { Full(A, Box), }\n"
            "                  ^^^^");
}

TEST(ShownPlaces, AnImportedTextShowsItsOwnLine) {
  const IRModule library = parse_module(std::string(kLine1) + "def @two(%x: int32) {\n\n  add(%x, 1f)\n}", "lib.rly");
  const IRModule module =
      parse_module(std::string(kLine1) + "def @main() { @two(1) }", "net.relay", {.init_module = library});
  EXPECT_THAT(kit::user_error_of([&] { infer_type(module); }),
              HasSubstr("\n  in: lib.rly:4:3\n      add(%x, 1f)\n      ^^^^^^^^^^^"));
}

TEST(ShownPlaces, ALongLineIsCut) {
  const std::string error =
      shown_error("def @main(%x: int32) { (" + std::string(300, ' ') + "%x + 1f" + std::string(300, ' ') + ") }");
  EXPECT_THAT(error, HasSubstr("\n    " + std::string(77, ' ') + "%x + 1f"));
  EXPECT_THAT(error, HasSubstr("\n    " + std::string(80, ' ') + "^^^^"));
  EXPECT_THAT(error, Not(HasSubstr("^^^^^")));
}

TEST(ShownPlaces, AnExpressionOfAModuleShowsTheModulesLine) {
  const IRModule module = read_shown("def @main(%x: int32) { %x.1 }");
  const auto* main = module->lookup("main").as<FunctionNode>();
  const auto error = [&](const IRModule& beside) {
    return kit::user_error_of([&] { infer_type(main->body, beside); });
  };
  EXPECT_THAT(error(module), HasSubstr("\n  in: net.relay:2:24\n    def @main(%x: int32) { %x.1 }\n"));
  EXPECT_THAT(error({}), Not(HasSubstr("def @main")));
}

TEST(ShownPlaces, ErrorsWithoutATextStayAsTheyAre) {
  const Var x = make_var("x", make_tensor_type(Shape{2}, DataType::float_(32)));
  const Expr wrong = ops::add(x, make_scalar(1, DataType::int_(32)));
  wrong->span = make_span("net.relay", 2, 1);
  const IRModule made = make_module(make_function({x}, wrong));
  const std::string plain = kit::user_error_of([&] { infer_type(made); });
  EXPECT_THAT(plain, HasSubstr("\n  in: net.relay:2:1"));
  EXPECT_EQ(plain.find('^'), std::string::npos);
  made->add_source(make_source("net.relay", "one line"));
  EXPECT_EQ(kit::user_error_of([&] { infer_type(made); }), plain);
  made->add_source(make_source("net.relay", "one\n%x + 1 # here"));
  EXPECT_EQ(kit::user_error_of([&] { infer_type(made); }), plain + "\n    %x + 1 # here\n    ^^");
}

TEST(ShownPlaces, PlacesThatAreNoPlacesInATextShowNothing) {
  IRModule module = make_module();
  module->add_source(make_source("a", "text\n\nmore"));
  for (const std::string place : {"", "a", "a:1", "a:1:", "a:0:1", "a:1:0", "a:1:5", "a:2:1", "a:4:1", "b:1:1", "a:1:x",
                                  "a:-1:1", "a:1:99999999999999999999"}) {
    const UserError error("wrong", {"", place});
    EXPECT_STREQ(with_shown_place(error, {}, module).what(), error.what()) << place;
  }
  EXPECT_STREQ(with_shown_place(UserError("wrong", {"", "a:1:2"}), {}, module).what(),
               "wrong\n  in: a:1:2\n    text\n     ^^^");
  EXPECT_STREQ(with_shown_place(UserError("wrong", {"", "a:3:4"}), {}, module).what(),
               "wrong\n  in: a:3:4\n    more\n       ^");
}

}  // namespace
}  // namespace headrace::relay
