// Whole text files.
#pragma once

#include <string>
#include <string_view>

namespace headrace {

// The text of the file `path`. UserError when it does not exist, cannot be read, is no regular file or no UTF-8; `what`
// names the file's role in the message ("program").
std::string read_text(const std::string& path, std::string_view what);

// All that comes on the standard input. UserError when reading it fails, as from a folder, or it is no UTF-8.
std::string read_standard_input();

}  // namespace headrace
