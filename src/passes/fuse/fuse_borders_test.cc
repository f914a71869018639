#include "passes/fuse/fuse_borders.h"

#include <gmock/gmock.h>

#include "ir/op_table.h"
#include "ops/op_keys.h"
#include "passes/tests/pass_testing.h"

namespace headrace::passes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// "exp | nn.dense: FUSE_KINDS: ...", one for each border.
std::vector<std::string> borders_of(const std::string& main, const FuseOptions& options = {}) {
  std::vector<std::string> lines;
  const auto op_of = [](const Expr& e) { return e.as<relay::CallNode>()->as_op()->name; };
  for (const FuseBorder& border : find_fuse_borders(read("def @main" + main), options)) {
    std::vector<std::string> users;
    for (const Expr& user : border.users) users.push_back(op_of(user));
    lines.push_back(fmt::format("{} | {}: {}: {}", op_of(border.producer), fmt::join(users, ", "),
                                name_of_fuse_reason(border.code), border.message));
  }
  return lines;
}

TEST(FuseBorders, NoneWhereAllIsOneKernel) {
  EXPECT_THAT(borders_of("(%x: Tensor[(4), float32]) { nn.relu(add(exp(%x), 1f)) }"), IsEmpty());
  EXPECT_THAT(borders_of("(%x: Tensor[(4), float32]) { %0 = exp(%x); (%0, %x) }"), IsEmpty());
}

TEST(FuseBorders, OpaqueOps) {
  EXPECT_THAT(borders_of("(%x: Tensor[(4), float32]) { exp(cumsum(negative(%x))) }"),
              ElementsAre("negative | cumsum: FUSE_PATTERN: 'cumsum' shares no kernel: it is registered as opaque",
                          "cumsum | exp: FUSE_PATTERN: 'cumsum' shares no kernel: it is registered as opaque"));
}

TEST(FuseBorders, AnOpaqueOpOnTheWay) {
  EXPECT_THAT(borders_of("(%x: Tensor[(4), float32]) { %0 = exp(%x); add(%0, cumsum(%0)) }"),
              ElementsAre("exp | cumsum, add: FUSE_PATTERN: 'cumsum' shares no kernel: it is registered as opaque",
                          "cumsum | add: FUSE_PATTERN: 'cumsum' shares no kernel: it is registered as opaque"));
}

TEST(FuseBorders, Depth) {
  EXPECT_THAT(borders_of("(%x: Tensor[(4), float32]) { abs(nn.relu(exp(%x))) }", {.max_depth = 2}),
              ElementsAre("nn.relu | abs: FUSE_DEPTH: with 'abs' the group would have more than max_depth = 2 op "
                          "calls"));
}

TEST(FuseBorders, Tensors) {
  EXPECT_THAT(borders_of("(%x: Tensor[(4), float32], %y: Tensor[(4), float32], %z: Tensor[(4), float32]) {"
                         " multiply(add(%x, %y), %z) }",
                         {.max_args = 3}),
              ElementsAre("add | multiply: FUSE_TENSORS: with 'multiply' the kernel would have more than 3 tensors "
                          "around it"));
}

TEST(FuseBorders, MultipleUsers) {
  EXPECT_THAT(borders_of("(%x: Tensor[(4), float32]) { %0 = exp(%x); (nn.relu(%0), abs(%0)) }"),
              ElementsAre("exp | nn.relu, abs: FUSE_MULTIPLE_USERS: the 2 calls that read 'exp' do not meet in one "
                          "again"));
  EXPECT_THAT(borders_of("(%x: Tensor[(4), float32]) { %0 = exp(%x); (nn.relu(%0), %0) }"),
              ElementsAre("exp | nn.relu: FUSE_MULTIPLE_USERS: the value of 'exp' is also the result"));
  EXPECT_THAT(borders_of("(%x: Tensor[(4), float32]) { %0 = exp(%x); (add(nn.relu(%0), %0), %0) }"),
              ElementsAre("exp | nn.relu, add: FUSE_MULTIPLE_USERS: the value of 'exp' is also the result"));
  EXPECT_THAT(borders_of("(%x: Tensor[(4), float32]) { %0 = exp(%x); let %a = %0; add(nn.relu(%0), %a) }"),
              ElementsAre("exp | nn.relu: FUSE_MULTIPLE_USERS: the value of 'exp' is also bound by a let"));
}

TEST(FuseBorders, KindsThatShareNoKernel) {
  EXPECT_THAT(borders_of("(%x: Tensor[(4), float32]) { exp(sum(%x)) }"),
              ElementsAre("sum | exp: FUSE_KINDS: 'sum' is a reduction, which ends its group"));
  EXPECT_THAT(borders_of("(%x: Tensor[(4, 2), float32]) { sum(transpose(%x)) }"),
              ElementsAre("transpose | sum: FUSE_KINDS: the group of 'transpose', whose kind is injective, does not "
                          "go in front of that of 'sum', whose kind is reduction"));
  EXPECT_THAT(borders_of("(%x: Tensor[(4, 2), float32], %w: Tensor[(3, 2), float32]) { nn.dense(exp(%x), %w) }"),
              ElementsAre("exp | nn.dense: FUSE_KINDS: the group of 'exp', whose kind is elementwise, does not go in "
                          "front of 'nn.dense', whose kind is anchor"));
}

// The kind compared is that of a whole group, which its last op alone does not have.
TEST(FuseBorders, KindsOfGroups) {
  EXPECT_THAT(borders_of("(%x: Tensor[(4, 2), float32]) { sum(nn.relu(transpose(%x))) }"),
              ElementsAre("transpose | nn.relu: FUSE_KINDS: the group of 'transpose', whose kind is injective, does "
                          "not go in front of that of 'nn.relu', whose kind is reduction"));
  EXPECT_THAT(borders_of("(%x: Tensor[(4, 2), float32], %w: Tensor[(3, 2), float32]) {"
                         " sum(add(nn.dense(%x, %w), 1f)) }"),
              ElementsAre("add | sum: FUSE_KINDS: the group of 'add', whose kind is anchor, does not go in front of "
                          "'sum', whose kind is reduction"));
}

// An op whose calls have no kind of their own.
TEST(FuseBorders, OpsRegisteredAsTuples) {
  ops::register_all_ops();
  const Op op = make_op("test.borders_pair");
  op->set(relay::kTypeRelation,
          relay::TypeRelationFn([](const relay::RelationInput& input) -> Type { return input.tensor(0); }));
  op->set(ops::kFusionKind, ops::FusionKind::tuple);
  publish_op(op, true);
  EXPECT_THAT(
      borders_of("(%x: Tensor[(4), float32]) { test.borders_pair(exp(%x)) }"),
      ElementsAre("exp | test.borders_pair: FUSE_PATTERN: 'test.borders_pair' shares no kernel: it is registered as "
                  "tuple"));
}

TEST(FuseBorders, TwoAnchors) {
  EXPECT_THAT(borders_of("(%x: Tensor[(4, 2), float32], %w: Tensor[(2, 2), float32]) {"
                         " nn.dense(nn.relu(nn.dense(%x, %w)), %w) }"),
              ElementsAre("nn.relu | nn.dense: FUSE_ANCHORS: the groups of 'nn.relu' and 'nn.dense' have an anchor "
                          "each, and a kernel has one"));
  EXPECT_THAT(borders_of("(%x: Tensor[(4, 2), float32], %v: Tensor[(2, 2), float32], %w: Tensor[(2, 2), float32]) {"
                         " add(nn.dense(%x, %v), nn.dense(%x, %w)) }"),
              ElementsAre("nn.dense | add: FUSE_ANCHORS: the groups of 'nn.dense' and 'add' have an anchor each, and a "
                          "kernel has one"));
}

TEST(FuseBorders, Views) {
  EXPECT_THAT(borders_of("(%x: Tensor[(4), float32]) { exp(reshape(nn.relu(%x), newshape=[2, 2])) }"),
              ElementsAre("nn.relu | reshape: FUSE_VIEW: 'reshape' is a view, which alone costs nothing",
                          "reshape | exp: FUSE_VIEW: 'reshape' is a view, which alone costs nothing"));
}

TEST(FuseBorders, SizesThatOnlyTheDataTells) {
  EXPECT_THAT(borders_of("(%x: Tensor[(4), float32]) { abs(argwhere(exp(%x))) }"),
              ElementsAre("exp | argwhere: FUSE_DATA_SIZED: the size of the result of 'argwhere' comes from data",
                          "argwhere | abs: FUSE_DATA_SIZED: the size of the result of 'argwhere' comes from data"));
}

// Inside a kernel the shape would be a tensor of unknown value, and the axes of squeeze could not be determined.
TEST(FuseBorders, SizesThatAnOperandTells) {
  EXPECT_THAT(
      borders_of("(%x: Tensor[(1, 6), float32]) { squeeze(broadcast_to(%x, shape_of(%x))) }"),
      ElementsAre("shape_of | broadcast_to: FUSE_PATTERN: 'shape_of' shares no kernel: it is registered as "
                  "opaque",
                  "broadcast_to | squeeze: FUSE_DATA_SIZED: the size of the result of 'broadcast_to' comes from data"));
}

TEST(FuseBorders, Tuples) {
  EXPECT_THAT(borders_of("(%x: Tensor[(4), float32]) { %0 = (exp(%x), %x); nn.relu(%0.0) }"),
              ElementsAre("exp | : FUSE_TUPLE: the value of 'exp' is an item of a tuple that is taken apart again"));
}

TEST(FuseBorders, Scopes) {
  EXPECT_THAT(borders_of("(%x: Tensor[(4), float32]) { let %a = exp(%x); nn.relu(%a) }"),
              ElementsAre("exp | : FUSE_SCOPE: the value of 'exp' is bound by a let"));
  EXPECT_THAT(borders_of("(%x: Tensor[(4), float32], %c: bool) { if (%c) { exp(%x) } else { %x } }"),
              ElementsAre("exp | : FUSE_SCOPE: the value of 'exp' is a condition or a branch's value"));
  EXPECT_THAT(borders_of("(%x: Tensor[(4), float32]) { let %f = fn (%y: Tensor[(4), float32]) { exp(%y) }; %f(%x) }"),
              ElementsAre(StartsWith("exp | : FUSE_SCOPE: the value of 'exp' is a function's result")));
  EXPECT_THAT(borders_of("(%x: Tensor[(4), float32]) { let %f = fn (%y: Tensor[(4), float32]) { %y }; %f(exp(%x)) }"),
              ElementsAre(HasSubstr("FUSE_SCOPE: the value of 'exp' is an argument of a call that is not an op's")));
}

TEST(FuseBorders, OnlyReasonsOfFusionHaveANameHere) {
  EXPECT_EQ(name_of_fuse_reason(HR_REASON_FUSE_SCOPE), "FUSE_SCOPE");
  EXPECT_THROW(name_of_fuse_reason(HR_REASON_BAD_MODEL), InternalError);
}

}  // namespace
}  // namespace headrace::passes
