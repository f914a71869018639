// Whole text files.
#pragma once

#include <string>
#include <string_view>

namespace headrace {

// Returns the text of the file `path`. UserError when it does not exist, cannot be read, is not a regular file, is
// not UTF-8 or has a NUL byte; `what` names the file's role in the message ("program").
std::string read_text(const std::string& path, std::string_view what);

// Reads the standard input to its end. UserError when reading fails, as from a folder, or the text is not
// UTF-8 or has a NUL byte.
std::string read_standard_input();

}  // namespace headrace
