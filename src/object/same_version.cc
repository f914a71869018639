#include "object/same_version.h"

#include <string_view>

static_assert(std::string_view(HEADRACE_VERSION) == "0.1.0", "write the new version into object/same_version.h, too");

const char built_with_headers_of_headrace_0_1_0 = 1;
