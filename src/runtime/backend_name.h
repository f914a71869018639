// Names of backends, as users write them: --backends NAME, NAME.KEY=VALUE, target.NAME.
#pragma once

#include <string_view>

namespace headrace::runtime {

// Throws a UserError for a name that no backend may have: the name is not of 1 to 64 letters, digits, '_' and '-', or
// it is a word that placements and annotations use for code of the compiler itself (native, external, default).
// `library` is the path of the backend's library, for the message; empty where the backend is in no library.
void check_backend_name(std::string_view name, std::string_view library = {});

}  // namespace headrace::runtime
