// The programs that come with Headrace, as text: relay/text/std/*.rly, by file name.
//
//   import "prelude.rly"        at the top of a text (parse.h)
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace headrace::relay {

const std::map<std::string, std::string_view, std::less<>>& std_texts();

}  // namespace headrace::relay
