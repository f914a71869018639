// The table of the ONNX operators that can be imported.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "frontend/onnx/node/op_row.h"

namespace headrace::onnx {

// The domain of onnxruntime's own operators, which its optimiser puts into models.
inline constexpr std::string_view kMicrosoftDomain = "com.microsoft";

// Tells whether one Relay op computes an operator, so that a backend can claim it.
enum class OpForm {
  single,    // one does; other ops adapt its operands and results. The row is in single/
  composed,  // Relay has no op for the whole. The row is in compositions/
};

// Returns the row of an operator; null if it is not supported.
const OpRow* find_op_row(std::string_view domain, std::string_view name);
// Returns the form of an operator; nullopt if it has no row.
std::optional<OpForm> find_form(std::string_view domain, std::string_view name);
// Returns whether the importer has a form for the operator: a row, or its own code (If).
bool is_operator(std::string_view domain, std::string_view name);
// Returns the names of all supported operators of the default domain, or of kMicrosoftDomain, sorted.
std::vector<std::string_view> supported_ops(std::string_view domain = {});

}  // namespace headrace::onnx
