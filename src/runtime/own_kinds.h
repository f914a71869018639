// The kinds of modules that Headrace itself makes; users' modules have others.
#pragma once

#include <array>
#include <string_view>

namespace headrace::runtime {

inline constexpr std::array<std::string_view, 5> kOwnKinds = {"artifact", "const_loader", "graph_executor",
                                                              "graph_executor_factory", "system_lib"};

}  // namespace headrace::runtime
