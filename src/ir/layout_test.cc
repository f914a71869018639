#include "ir/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit/errors.h"

namespace headrace {
namespace {

using testing::HasSubstr;

std::string show(const Array<PrimExpr>& list) {
  std::vector<std::string> items;
  for (const PrimExpr& e : list) items.push_back(to_string(e));
  return fmt::format("{}", fmt::join(items, ", "));
}

TEST(Layout, ReadsAndPrints) {
  for (const char* text : {"NCHW", "NHWC", "OIHW", "HWIO", "NCHW16c", "OIHW16i64o4i", "NCDHW8c", "C", "NCW"}) {
    EXPECT_EQ(Layout::parse(text).text(), text);
    EXPECT_EQ(Layout::parse(text), Layout::parse(text));
  }
  const Layout packed = Layout::parse("OIHW16i64o4i");
  EXPECT_EQ(packed.letters(), "OIHW");
  EXPECT_EQ(packed.rank(), 7u);
  EXPECT_EQ(packed.factor('I'), 64);
  EXPECT_EQ(packed.factor('O'), 64);
  EXPECT_EQ(packed.factor('H'), 1);
  EXPECT_EQ(packed.find('W'), 3u);
  EXPECT_FALSE(packed.find('N').has_value());
  EXPECT_EQ(packed.positions('I'), (std::vector<size_t>{1, 4, 6}));
  EXPECT_EQ(packed.factors('I'), (Shape{16, 4}));
  EXPECT_EQ(Layout::parse("8c4cNC").positions('C'), (std::vector<size_t>{3, 0, 1}));
  EXPECT_EQ(packed.factors('H'), Shape());
  EXPECT_TRUE(packed.is_packed());
  EXPECT_FALSE(Layout::parse("NHWC").is_packed());
  EXPECT_NE(Layout::parse("NHWC"), Layout::parse("NCHW"));
  EXPECT_EQ(packed.items()[4], (Layout::Item{'I', 16}));
}

TEST(Layout, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> kCases[] = {
      {"", "it is empty"},
      {"NCHc", "the part 'c' has no factor before it"},
      {"NC?W", "'?' is not a letter"},
      {"NCHN", "the axis N stands twice"},
      {"NHW16c", "the axis C stands in parts only"},
      {"NCHW16", "the factor 16 stands before no lower-case letter"},
      {"NCHW16C", "the factor 16 stands before no lower-case letter"},
      {"NCHW0c", "the factor 0 is not between 1 and 2^31 - 1"},
      {"NCHW99999999999999999999c", "is not between 1"},
      {"NC2147483647c2147483647c2147483647c", "the product of its factors is too large"}};
  for (const auto& [text, why] : kCases)
    EXPECT_THAT(kit::user_error_of([&] { Layout::parse(text); }), HasSubstr(why)) << text;
}

TEST(Layout, ConvertsShapes) {
  const PrimVar n = make_prim_var("n"), c = make_prim_var("c");
  const auto convert = [](const Array<PrimExpr>& dims, const char* from, const char* to) {
    return show(convert_shape(dims, Layout::parse(from), Layout::parse(to)));
  };
  const Array<PrimExpr> image{n, make_int(32), make_int(7), make_int(9)};
  EXPECT_EQ(convert(image, "NCHW", "NHWC"), "n, 7, 9, 32");
  EXPECT_EQ(convert(image, "NCHW", "NCHW16c"), "n, 2, 7, 9, 16");
  EXPECT_EQ(convert({n, make_int(2), make_int(7), make_int(9), make_int(16)}, "NCHW16c", "NCHW"), "n, 32, 7, 9");
  EXPECT_EQ(convert({n, make_int(2), make_int(7), make_int(9), make_int(16)}, "NCHW16c", "NHWC8c"), "n, 7, 9, 4, 8");
  EXPECT_EQ(convert({n, c, make_int(7), make_int(9)}, "NCHW", "NCHW16c"), "n, c // 16, 7, 9, 16");
  EXPECT_EQ(convert(to_dims({128, 64, 3, 3}), "OIHW", "OIHW16i64o4i"), "2, 1, 3, 3, 16, 64, 4");
  const auto error = [&](const Array<PrimExpr>& dims, const char* from, const char* to) {
    return kit::user_error_of([&] { convert(dims, from, to); });
  };
  EXPECT_THAT(error(image, "NCHW", "NCW"), HasSubstr("layout NCHW has the axes NCHW, layout NCW has NCW"));
  EXPECT_THAT(error({n}, "NCHW", "NHWC"), HasSubstr("layout NCHW has 4 dimensions, but 1 are given"));
  EXPECT_THAT(error(to_dims({1, 3, 7, 9}), "NCHW", "NCHW16c"),
              HasSubstr("the axis C of 3 elements does not split into parts of 16 (layout NCHW16c); pad it first"));
  EXPECT_THAT(error(to_dims({1, 2, 7, 9, 8}), "NCHW16c", "NCHW"),
              HasSubstr("dimension 4 of layout NCHW16c is 8, but its part 16c says 16"));
}

// Every element of a small tensor goes to a place of its own, and back.
TEST(Layout, IndicesGoThereAndBack) {
  const std::pair<const char*, const char*> kPairs[] = {
      {"OIHW", "OIHW4i2o2i"}, {"OIHW", "HWIO"}, {"OIHW4i2o2i", "OIHW8o"}, {"OIHW2o", "HW4iOI"}};
  const Shape extents{8, 16, 1, 3};  // O, I, H, W
  for (const auto& [from_text, to_text] : kPairs) {
    const Layout from = Layout::parse(from_text), to = Layout::parse(to_text);
    const Shape dims = *as_shape(convert_shape(to_dims(extents), Layout::parse("OIHW"), from));
    const Shape there = *as_shape(convert_shape(to_dims(dims), from, to));
    std::vector<bool> is_taken(8 * 16 * 3, false);
    for (int64_t flat = 0; flat < 8 * 16 * 3; ++flat) {
      Array<PrimExpr> index;
      int64_t rest = flat;
      for (size_t d = dims.size(); d-- > 0; rest /= dims[d]) index.push_back(make_int(rest % dims[d]));
      Array<PrimExpr> ordered;
      for (size_t d = index.size(); d-- > 0;) ordered.push_back(index[d]);
      const Array<PrimExpr> mapped = map_index(ordered, from, to);
      int64_t place = 0;
      for (size_t d = 0; d < there.size(); ++d) {
        ASSERT_LT(*as_int(mapped[d]), there[d]);
        place = place * there[d] + *as_int(mapped[d]);
      }
      EXPECT_FALSE(is_taken[static_cast<size_t>(place)]) << from_text << " to " << to_text;
      is_taken[static_cast<size_t>(place)] = true;
      EXPECT_EQ(show(map_index(mapped, to, from)), show(ordered));
    }
  }
}

TEST(Layout, SymbolicIndices) {
  const Array<PrimExpr> index{make_prim_var("n"), make_prim_var("c"), make_prim_var("h"), make_prim_var("w")};
  EXPECT_EQ(show(map_index(index, Layout::parse("NCHW"), Layout::parse("NCHW16c"))), "n, c // 16, h, w, c %% 16");
  const Array<PrimExpr> packed{index[0], index[1], index[2], index[3], make_prim_var("b")};
  EXPECT_EQ(show(map_index(packed, Layout::parse("NCHW16c"), Layout::parse("NHWC16c"))), "n, h, w, c, b");
  EXPECT_EQ(show(map_index(index, Layout::parse("NCHW"), Layout::parse("NHWC"))), "n, h, w, c");
}

}  // namespace
}  // namespace headrace
