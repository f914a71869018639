#include "driver/all_passes.h"

#include <gtest/gtest.h>

#include <set>

#include "passes/pipeline.h"

namespace headrace::driver {
namespace {

TEST(AllPasses, HoldsEveryPassOfTheListsOnce) {
  std::set<std::string> names;
  for (const pass::Pass& pass : all_passes()) {
    EXPECT_TRUE(names.insert(pass.info.name).second) << pass.info.name;
    EXPECT_FALSE(pass.info.summary.empty());
  }
  for (const auto& list : {passes::canonical(), passes::native(), passes::by_name()}) {
    for (const pass::Pass& pass : list) EXPECT_TRUE(names.contains(pass.info.name)) << pass.info.name;
  }
  EXPECT_TRUE(names.contains("InferType"));
}

TEST(AllPasses, SpellingsResolve) {
  EXPECT_EQ(get_pass("fuse_ops").info.name, "FuseOps");
  EXPECT_EQ(get_pass("FuseOps").info.name, "FuseOps");
}

// The names that Relay's users know these by.
TEST(AllPasses, RelaysNamesResolve) {
  for (const char* name : {"InferType",
                           "ToANormalForm",
                           "ToBasicBlockNormalForm",
                           "ToGraphNormalForm",
                           "RemoveUnusedFunctions",
                           "RemoveStandaloneReshapes",
                           "FuseOps",
                           "DefuseOps",
                           "DeFuseOps",
                           "DynamicToStatic",
                           "ConvertLayout",
                           "DeadCodeElimination",
                           "FoldConstant",
                           "Inline",
                           "EliminateCommonSubexpr",
                           "SimplifyExpr",
                           "SimplifyInference",
                           "FoldScaleAxis",
                           "ForwardFoldScaleAxis",
                           "BackwardFoldScaleAxis",
                           "LambdaLift",
                           "EtaExpand",
                           "CanonicalizeOps",
                           "CanonicalizeCast",
                           "CombineParallelConv2D",
                           "CombineParallelDense",
                           "CombineParallelBatchMatmul",
                           "FoldExplicitPadding",
                           "DivToMul",
                           "SplitArgs",
                           "FirstOrderGradient",
                           "ToMixedPrecision"}) {
    EXPECT_TRUE(pass::same_pass_name(get_pass(name).info.name, name)) << name;
  }
}

TEST(AllPasses, AnUnknownNameListsTheKnown) {
  try {
    get_pass("canonical");  // a list, where one pass is wanted
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_TRUE(e.message().starts_with("there is no pass 'canonical'; there are InferType, ")) << e.what();
  }
  try {
    parse_pass_list("FuseOps,FuseOop");
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_TRUE(e.message().starts_with("there is no pass 'FuseOop'; there are canonical, native, InferType, "))
        << e.what();
  }
}

TEST(AllPasses, ListsExpand) {
  const PassList list = parse_pass_list("infer_type, canonical,native ,fold_constant");
  EXPECT_EQ(list.passes.size(), 2 + passes::canonical().size() + passes::native().size());
  EXPECT_EQ(list.passes.front().info.name, "InferType");
  EXPECT_EQ(list.passes.back().info.name, "FoldConstant");
  EXPECT_EQ(list.named, (std::vector<std::string>{"InferType", "FoldConstant"}));
  EXPECT_TRUE(parse_pass_list("").passes.empty());
}

TEST(AllPasses, LoopProgramsHaveTheirOwn) {
  EXPECT_EQ(get_pass("unroll_loop", Ir::tir).info.name, "UnrollLoop");
  EXPECT_EQ(parse_pass_list("kernel,lower_math", Ir::tir).passes.size(), all_passes(Ir::tir).size() + 1);
  try {
    get_pass("FuseOps", Ir::tir);
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_EQ(e.message(),
              "there is no pass 'FuseOps' of loop programs; there are VectorizeLoop, UnrollLoop, LowerMath");
  }
}

}  // namespace
}  // namespace headrace::driver
