#include "driver/dump_loops.h"

#include <filesystem>

#include "driver/output_file.h"
#include "tir/print.h"

namespace headrace::driver {

// Returns a safe file name: at most 200 characters, and an underscore for each one that is not a letter or digit.
static std::string file_name(std::string_view name) {
  std::string result(name.substr(0, 200));
  for (char& c : result) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!is_plain) c = '_';
  }
  return result;
}

void dump_loops(const IRModule& loops, const std::string& folder, std::string_view suffix) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw_user_error("the folder '{}' cannot be made: {}", folder, error.message());
  for (const auto& [name, function] : loops->functions()) {
    write_text((std::filesystem::path(folder) / (file_name(name->name_hint) + std::string(suffix))).string(),
               tir::print_function(function.cast<tir::PrimFuncNode>()));
  }
}

}  // namespace headrace::driver
