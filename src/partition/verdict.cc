#include "partition/verdict.h"

#include <algorithm>
#include <iterator>

#include "base/reason_name.h"
#include "object/array.h"
#include "object/repr.h"

namespace headrace::partition {

namespace {

constexpr hr_reason kRefusalReasons[] = {
    HR_REASON_OP_UNSUPPORTED,    HR_REASON_ATTRIBUTE_UNSUPPORTED,
    HR_REASON_DTYPE_UNSUPPORTED, HR_REASON_SHAPE_UNSUPPORTED,
    HR_REASON_OPSET_UNSUPPORTED, HR_REASON_DYNAMIC_UNSUPPORTED,
    HR_REASON_DATA_DEPENDENT,    HR_REASON_BAD_MODEL,
};

// Returns the refusal that a list of a reason and a message is; nothing for other lists.
std::optional<Verdict> read_pair(const Array<Value>& pair) {
  if (pair.size() != 2 || !pair[0].is<int64_t>() || !pair[1].is<std::string>()) return std::nullopt;
  const auto reason = static_cast<hr_reason>(pair[0].as<int64_t>());
  if (!is_refusal_reason(pair[0].as<int64_t>())) return std::nullopt;
  return Verdict{.reason = reason, .message = pair[1].as<std::string>()};
}

}  // namespace

Verdict read_answer(const Value& answer, std::string_view source) {
  if (answer.is_none()) return CheckAnswer(false);
  if (answer.is<bool>()) return CheckAnswer(answer.as<bool>());
  if (answer.is<int64_t>()) return CheckAnswer(answer.as<int64_t>() != 0);
  if (answer.is<std::string>()) return {.reason = HR_REASON_OP_UNSUPPORTED, .message = answer.as<std::string>()};
  if (answer.is<Array<Value>>()) {
    if (auto refusal = read_pair(answer.as<Array<Value>>())) return *std::move(refusal);
  }
  throw_user_error("{} gave {}; it must give True or False, or a string that says why not", source, repr(answer));
}

Value answer_of(const Verdict& verdict) {
  if (verdict.ok()) return Value(true);
  return Value(Array<Value>{Value(static_cast<int64_t>(verdict.reason)), Value(verdict.message)});
}

bool is_refusal_reason(int64_t reason) {
  return std::find(std::begin(kRefusalReasons), std::end(kRefusalReasons), reason) != std::end(kRefusalReasons);
}

hr_reason read_refusal_reason(std::string_view name) {
  std::vector<std::string_view> names;
  for (const hr_reason reason : kRefusalReasons) {
    names.push_back(reason_name(reason));
    if (names.back() == name) return reason;
  }
  throw_user_error("'{}' is not a reason why a backend takes no call; the reasons are {}", name,
                   fmt::join(names, ", "));
}

}  // namespace headrace::partition
