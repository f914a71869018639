#include "tools/headrace/file_uses.h"

#include "base/error.h"
#include "driver/output_file.h"

namespace headrace::tools {

void FileUses::add_inputs(const std::string& what, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (!path.empty()) inputs_.push_back({.by = what, .path = path});
  }
}

void FileUses::add_output(const std::string& option, const std::string& path) {
  if (!path.empty()) outputs_.push_back({.by = option, .path = path});
}

std::vector<std::string> FileUses::inputs() const {
  std::vector<std::string> paths;
  for (const Use& input : inputs_) paths.push_back(input.path);
  return paths;
}

void FileUses::check() const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    for (const Use& input : inputs_) driver::check_no_input(outputs_[i].path, {input.path}, input.by);
    for (size_t j = 0; j < i; ++j) {
      if (!driver::name_one_file(outputs_[i].path, outputs_[j].path)) continue;
      const std::string& by = outputs_[i].by;
      throw UsageError(by == outputs_[j].by
                           ? fmt::format("{}: '{}' would be written twice; name other files", by, outputs_[i].path)
                           : fmt::format("{} and {} name one file, '{}'", outputs_[j].by, by, outputs_[i].path));
    }
  }
}

}  // namespace headrace::tools
