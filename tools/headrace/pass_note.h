// The text of a pass's note, for the programs that run passes.
#pragma once

#include <string>

#include "pass/pass.h"

namespace headrace::tools {

// Returns "note: FoldConstant at model.relay:3:8: MESSAGE", without the place where it is not known. Escape
// it (shown_text.h) before it is printed: messages and places hold names of the model.
std::string to_text(const pass::PassNote& note);

}  // namespace headrace::tools
