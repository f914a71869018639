// Texts of JSON as TVM's save_json writes them, for tests.
#pragma once

#include <fmt/ranges.h>

#include <string>
#include <vector>

namespace headrace::relay {

// Returns a graph whose root is the first of `nodes`, at place 1.
inline std::string tvm_graph(const std::vector<std::string>& nodes, const std::vector<std::string>& tensors = {}) {
  std::vector<std::string> quoted;
  for (const std::string& tensor : tensors) quoted.push_back('"' + tensor + '"');
  return fmt::format(
      "{{\n  \"root\": 1, \n  \"nodes\": [\n    {{\n      \"type_key\": \"\"\n    }}, \n    {}\n  ], \n"
      "  \"b64ndarrays\": [{}], \n  \"attrs\": {{\"tvm_version\": \"0.12.0\"}}\n}}",
      fmt::join(nodes, ", \n    "), fmt::join(quoted, ", "));
}

}  // namespace headrace::relay
