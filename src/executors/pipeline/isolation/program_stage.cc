#include "executors/pipeline/isolation/program_stage.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include "base/error.h"
#include "base/library_folder.h"

namespace headrace::executors::pipeline::isolation {

std::string find_stage_host(const std::string& library_folder) {
  for (const char* folder : {"", "bin/", "../bin/", "../../bin/"}) {
    std::string path = fmt::format("{}/{}headrace-stage-host", library_folder, folder);
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  throw MissingError(fmt::format(
      "there is no program 'headrace-stage-host' beside the libraries in '{}', which runs stages in processes of "
      "their own; install Headrace's programs, or give the stage isolation=\"thread\"",
      library_folder));
}

std::shared_ptr<StageCode> make_program_stage(const ProgramFiles& programs, const ProcessOptions& options) {
  HostCommand command{.words = {find_stage_host(library_folder()), std::to_string(programs.threads),
                                fmt::format("{}", fmt::join(programs.cpus, ",")),
                                !programs.has_batch ? "one"
                                : programs.any_rows ? "any"
                                                    : "rows",
                                programs.fallback == Fallback::none ? "none" : "native"}};
  for (const ProgramFile& program : programs.programs) {
    command.words.insert(command.words.end(), {program.name, program.section, program.program});
    command.files.push_back(program.file);
  }
  ProcessOptions of_program = options;
  of_program.is_program = true;
  return make_process_stage(std::move(command), of_program);
}

}  // namespace headrace::executors::pipeline::isolation
