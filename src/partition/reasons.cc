#include "partition/reasons.h"

#include <algorithm>
#include <iterator>

namespace headrace::partition {

namespace {

struct Row {
  hr_reason reason;
  std::string_view name, remedy;
};

constexpr Row kRows[] = {
    {HR_REASON_NONE, "NONE", ""},
    {HR_REASON_NOT_FOUND, "NOT_FOUND", ""},
    {HR_REASON_NOT_AN_ARTIFACT, "NOT_AN_ARTIFACT", ""},
    {HR_REASON_BAD_MAGIC, "BAD_MAGIC", ""},
    {HR_REASON_BAD_VERSION, "BAD_VERSION", ""},
    {HR_REASON_BAD_CHECKSUM, "BAD_CHECKSUM", ""},
    {HR_REASON_TRUNCATED, "TRUNCATED", ""},
    {HR_REASON_CPU_FEATURE_MISSING, "CPU_FEATURE_MISSING", ""},
    {HR_REASON_BACKEND_MISSING, "BACKEND_MISSING",
     "install the backend, or build Headrace with its option USE_<NAME>=ON"},
    {HR_REASON_NEEDS_RUNTIME, "NEEDS_RUNTIME", ""},
    {HR_REASON_BAD_MANIFEST, "BAD_MANIFEST", ""},
    {HR_REASON_SYMBOL_MISSING, "SYMBOL_MISSING", ""},
    {HR_REASON_SYSTEM, "SYSTEM", ""},
    {HR_REASON_DEVICE_MISSING, "DEVICE_MISSING", ""},
    {HR_REASON_BAD_TENSOR, "BAD_TENSOR", ""},
    {HR_REASON_INPUT_MISSING, "INPUT_MISSING", ""},
    {HR_REASON_KERNEL_FAILED, "KERNEL_FAILED", ""},
    {HR_REASON_BACKEND_FAILED, "BACKEND_FAILED", "read the message of the backend, and correct its set-up"},
    {HR_REASON_OP_UNSUPPORTED, "OP_UNSUPPORTED",
     "name another backend that takes the op (headrace backend list --ops), or "
     "write the model with ops that this one takes"},
    {HR_REASON_ATTRIBUTE_UNSUPPORTED, "ATTRIBUTE_UNSUPPORTED",
     "change the attribute in the model, or name another backend"},
    {HR_REASON_DTYPE_UNSUPPORTED, "DTYPE_UNSUPPORTED",
     "cast the tensors to a dtype that the backend takes, or name another backend"},
    {HR_REASON_SHAPE_UNSUPPORTED, "SHAPE_UNSUPPORTED",
     "give the model other shapes (--shape, --dim), or name another backend"},
    {HR_REASON_OPSET_UNSUPPORTED, "OPSET_UNSUPPORTED", "convert the model to another opset, or name another backend"},
    {HR_REASON_DYNAMIC_UNSUPPORTED, "DYNAMIC_UNSUPPORTED", "fix the sizes of the inputs (--shape, --dim)"},
    {HR_REASON_DATA_DEPENDENT, "DATA_DEPENDENT", "make the input that the size depends on a constant (--bind)"},
    {HR_REASON_BAD_MODEL, "BAD_MODEL", "correct the model where the message says"},
    {HR_REASON_FUSE_PATTERN, "FUSE_PATTERN", ""},
    {HR_REASON_FUSE_DEPTH, "FUSE_DEPTH", ""},
    {HR_REASON_FUSE_MULTIPLE_USERS, "FUSE_MULTIPLE_USERS", ""},
    {HR_REASON_FUSE_KINDS, "FUSE_KINDS", ""},
    {HR_REASON_FUSE_ANCHORS, "FUSE_ANCHORS", ""},
    {HR_REASON_FUSE_VIEW, "FUSE_VIEW", ""},
    {HR_REASON_FUSE_DATA_SIZED, "FUSE_DATA_SIZED", ""},
    {HR_REASON_FUSE_TENSORS, "FUSE_TENSORS", ""},
    {HR_REASON_FUSE_TUPLE, "FUSE_TUPLE", ""},
    {HR_REASON_FUSE_SCOPE, "FUSE_SCOPE", ""},
    {HR_REASON_FOLD_LIMIT, "FOLD_LIMIT", ""},
    {HR_REASON_PLACE_ONLY_NATIVE, "PLACE_ONLY_NATIVE", "name backends (--backends)"},
    {HR_REASON_PLACE_BY_HAND, "PLACE_BY_HAND", "change the attribute Compiler of the function in the program"},
    {HR_REASON_PLACE_NO_FALLBACK, "PLACE_NO_FALLBACK", ""},
    {HR_REASON_PLACE_BY_ORDER, "PLACE_BY_ORDER",
     "name the other backend earlier in --backends, or move the op (--place)"},
    {HR_REASON_PLACE_NO_REGION, "PLACE_NO_REGION",
     "write the op with an operand and without variables of functions around it, so that a region can hold it"},
    {HR_REASON_PLACE_BY_COST, "PLACE_BY_COST",
     "measure the costs (headrace profile, --costs), or move the op (--place)"},
    {HR_REASON_PLACE_BY_PLAN, "PLACE_BY_PLAN", "edit the row of the op in the plan"},
    {HR_REASON_PLACE_BY_OVERRIDE, "PLACE_BY_OVERRIDE", "change or leave out the --place that the message names"},
};

const Row* find_row(hr_reason reason) {
  const auto is_it = [&](const Row& one) { return one.reason == reason; };
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows), is_it);
  return row == std::end(kRows) ? nullptr : row;
}

}  // namespace

std::string_view name_of(hr_reason reason) {
  const Row* row = find_row(reason);
  return row == nullptr ? "" : row->name;
}

std::string_view remedy_of(hr_reason reason) {
  const Row* row = find_row(reason);
  return row == nullptr ? "" : row->remedy;
}

}  // namespace headrace::partition
