// The programs of relay/text/std run and give what they say.
#include <gtest/gtest.h>

#include "interp/interp.h"
#include "ops/all_ops.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"
#include "relay/text/std_texts.h"

namespace headrace::interp {
namespace {

struct Case {
  const char* body;  // body of @main, after both imports
  int32_t result;
};

IRModule read(const std::string& text) {
  ops::register_all_ops();
  return relay::infer_type(
      relay::parse_module("#[version = \"0.0.5\"]\nimport \"prelude.rly\";\nimport \"nat.rly\"\nimport \"core.rly\"\n"
                          "import \"gradient.rly\"\n" +
                              text,
                          "test"));
}

void PrintTo(const Case& c, std::ostream* out) { *out << c.body; }

class Prelude : public testing::TestWithParam<Case> {};

TEST_P(Prelude, Runs) {
  // Digits of a list of one-digit numbers, read as one number: @digits([1, 2, 3]) is 123.
  const IRModule module = read(
      "def @digits(%l: List[int32]) -> int32 {\n"
      "  @foldl(fn (%a: int32, %d: int32) -> int32 { add(multiply(%a, 10), %d) }, 0, %l)\n}\n"
      "def @list() { Cons(3, Cons(1, Cons(4, Cons(1, Cons(5, Nil))))) }\n"
      "def @odd(%x: int32) -> bool { equal(floor_mod(%x, 2), 1) }\n"
      "def @tree() { Rose(1, Cons(Rose(2, Nil), Cons(Rose(3, Cons(Rose(4, Nil), Nil)), Nil))) }\n"
      "def @main() { " +
      std::string(GetParam().body) + " }");
  const NDArray result = run_main(module, {}).at(0);
  ASSERT_EQ(result.dtype(), DataType::int_(32));
  EXPECT_EQ(result.data<int32_t>()[0], GetParam().result) << GetParam().body;
}

INSTANTIATE_TEST_SUITE_P(
    Functions, Prelude,
    testing::Values(
        Case{"@id(7)", 7}, Case{"@compose(fn (%x) { add(%x, 1) }, fn (%x: int32) { multiply(%x, 10) })(3)", 31},
        Case{"@iterate(fn (%x: int32) { multiply(%x, 2) }, 10)(1)", 1024}, Case{"@hd(@list())", 3},
        Case{"@digits(@tl(@list()))", 1415}, Case{"@nth(@list(), 2)", 4},
        Case{"@digits(@update(@list(), 1, 9))", 39415}, Case{"@length(@list())", 5},
        Case{"@digits(@map(fn (%x) { subtract(9, %x) }, @list()))", 68584},
        Case{"@foldr(fn (%x: int32, %a: int32) { subtract(%x, %a) }, 0, @list())", 3 - (1 - (4 - (1 - 5)))},
        Case{"@foldr1(fn (%x: int32, %a: int32) { subtract(%x, %a) }, @list())", 3 - (1 - (4 - (1 - 5)))},
        Case{"@FromGradCell(Raw(3))", 3}, Case{"@FromGradCell(One(fn () { 4 }))", 4},
        Case{"@FromGradCell(@MultiplyGradCell(fn (%a: int32, %b: int32) { multiply(%a, %b) }, Raw(3), Raw(5)))", 15},
        // A product with one and a sum with zero are not computed: the functions here would give others.
        Case{"@FromGradCell(@MultiplyGradCell(fn (%a: int32, %b: int32) { 9 }, One(fn () { 1 }), Raw(5)))", 5},
        Case{"@FromGradCell(@MultiplyGradCell(fn (%a: int32, %b: int32) { 9 }, Raw(5), One(fn () { 1 })))", 5},
        Case{"@FromGradCell(@MultiplyGradCell(fn (%a: int32, %b: int32) { 9 }, Zero(fn () { 0 }), Raw(5)))", 0},
        Case{"@FromGradCell(@MultiplyGradCell(fn (%a: int32, %b: int32) { 9 }, One(fn () { 1 }), Zero(fn () { 0 })))",
             0},
        Case{"@FromGradCell(@AddGradCell(fn (%a: int32, %b: int32) { add(%a, %b) }, Raw(3), One(fn () { 1 })))", 4},
        Case{"@FromGradCell(@AddGradCell(fn (%a: int32, %b: int32) { 9 }, Zero(fn () { 0 }), Raw(5)))", 5},
        Case{"@FromGradCell(@AddGradCell(fn (%a: int32, %b: int32) { 9 }, Raw(5), Zero(fn () { 0 })))", 5},
        Case{"@sum(@list())", 14}, Case{"@digits(@concat(@tl(@list()), @list()))", 141531415},
        Case{"@digits(@filter(@odd, @list()))", 3115},
        Case{"@sum(@map(fn (%p) { multiply(%p.0, %p.1) }, @zip(@list(), @tl(@list()))))", 3 + 4 + 4 + 5},
        Case{"@digits(@rev(@list()))", 51413},
        Case{"@digits(@map_accuml(fn (%s: int32, %x: int32) { (add(%s, 1), multiply(%x, %s)) }, 0, "
             "@update(@list(), 4, 2)).1)",
             83810},
        Case{"@map_accumr(fn (%s: int32, %x: int32) { (add(multiply(%s, 10), %x), %x) }, 0, @list()).0", 51413},
        Case{"@digits(@unfoldr(fn (%n: int32) { if (equal(%n, 0)) { None } else { Some((subtract(%n, 1), %n)) } }, 4))",
             4321},
        Case{"@digits(@unfoldl(fn (%n: int32) { if (equal(%n, 0)) { None } else { Some((subtract(%n, 1), %n)) } }, 4))",
             1234},
        Case{"@size(@tree())", 4}, Case{"match (@tmap(fn (%x) { add(%x, 5) }, @tree())) { Rose(%x, _) => { %x } }", 6},
        Case{"@nat_to_int(@nat_double(@nat_from_int(21)))", 42},
        Case{"@nat_iterate(fn (%x: int32) { add(%x, 3) }, s(s(z)))(1)", 7},
        Case{"@nat_to_int(@nat_add(s(z), s(s(z))))", 3},
        Case{"@flip(fn (%a: int32, %b: int32) { subtract(multiply(%a, 10), %b) })(1, 2)", 19},
        Case{"@nat_nth(@list(), s(s(z)))", 4}, Case{"@digits(@nat_update(@list(), s(z), 9))", 39415},
        Case{"@length(@unfoldr(fn (%n: int32) { if (equal(%n, 0)) { None } else { Some((subtract(%n, 1), %n)) } }, "
             "5000))",
             5000}));

TEST(Imports, AreTakenOnceAndPrintAsPartOfTheProgram) {
  const IRModule module = read("import \"prelude.rly\"\ndef @main() { @length(Cons(1, Nil)) }");
  const IRModule again = relay::infer_type(relay::parse_module(relay::print_module(module), "again"));
  EXPECT_EQ(again->functions().size(), module->functions().size());
  EXPECT_EQ(run_main(again, {}).at(0).data<int32_t>()[0], 1);
}

TEST(Imports, ErrorsNameWhatThereIs) {
  const auto error_of = [](const std::string& text) -> std::string {
    try {
      relay::parse_module("#[version = \"0.0.5\"]\n" + text, "test");
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(error_of("import \"other.rly\"")
                .find("there is no text 'other.rly' to import; there are core.rly, gradient.rly, nat.rly, prelude.rly"),
            std::string::npos);
  EXPECT_NE(error_of("import \"prelude.rly\"\ndef @map() { 1 }").find("'@map' is defined twice"), std::string::npos);
  EXPECT_NE(error_of("import \"prelude.rly\"\ntype List { }").find("'List' is defined twice"), std::string::npos);
  EXPECT_NE(error_of("import prelude").find("expected def, type, import"), std::string::npos);
}

}  // namespace
}  // namespace headrace::interp
