#include "partition/reasons.h"

#include <algorithm>
#include <iterator>

namespace headrace::partition {

namespace {

struct Row {
  hr_reason reason;
  std::string_view remedy;
};

constexpr Row kRows[] = {
    {HR_REASON_BACKEND_MISSING, "install the backend, or build Headrace with its option USE_<NAME>=ON"},
    {HR_REASON_BACKEND_FAILED, "read the message of the backend, and correct its set-up"},
    {HR_REASON_OP_UNSUPPORTED,
     "name another backend that takes the op (headrace backend list --ops), or "
     "write the model with ops that this one takes"},
    {HR_REASON_ATTRIBUTE_UNSUPPORTED, "change the attribute in the model, or name another backend"},
    {HR_REASON_DTYPE_UNSUPPORTED, "cast the tensors to a dtype that the backend takes, or name another backend"},
    {HR_REASON_SHAPE_UNSUPPORTED, "give the model other shapes (--shape, --dim), or name another backend"},
    {HR_REASON_OPSET_UNSUPPORTED, "convert the model to another opset, or name another backend"},
    {HR_REASON_DYNAMIC_UNSUPPORTED, "fix the sizes of the inputs (--shape, --dim)"},
    {HR_REASON_DATA_DEPENDENT, "make the input that the size depends on a constant (--bind)"},
    {HR_REASON_BAD_MODEL, "correct the model where the message says"},
    {HR_REASON_PLACE_ONLY_NATIVE, "name backends (--backends)"},
    {HR_REASON_PLACE_BY_HAND, "change the attribute Compiler of the function in the program"},
    {HR_REASON_PLACE_BY_ORDER, "name the other backend earlier in --backends, or move the op (--place)"},
    {HR_REASON_PLACE_NO_REGION,
     "write the op with an operand and without variables of functions around it, so that a region can hold it"},
    {HR_REASON_PLACE_BY_COST, "measure the costs (headrace profile, --costs), or move the op (--place)"},
    {HR_REASON_PLACE_BY_PLAN, "edit the row of the op in the plan"},
    {HR_REASON_PLACE_BY_OVERRIDE, "change or leave out the --place that the message names"},
};

}  // namespace

std::string_view remedy_of(hr_reason reason) {
  const auto is_it = [&](const Row& one) { return one.reason == reason; };
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows), is_it);
  return row == std::end(kRows) ? "" : row->remedy;
}

}  // namespace headrace::partition
