// Whole text files.
#pragma once

#include <string>
#include <string_view>

namespace headrace {

// The text of the file `path`. UserError when it does not exist, cannot be read, or is no regular file; `what` names
// the file's role in the message ("program").
std::string read_text(const std::string& path, std::string_view what);

// All that comes on the standard input. UserError when reading it fails, as from a folder.
std::string read_standard_input();

}  // namespace headrace
