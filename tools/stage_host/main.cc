// headrace-stage-host: runs one stage of a pipeline, which starts this program, in a process of its own.
//
//   headrace-stage-host THREADS CPUS BATCH FALLBACK (NAME SECTION PROGRAM)...
//
// CPUS are numbers with commas between them; BATCH is "one", "rows" or "any"; FALLBACK "native" or
// "none". Each NAME is the name of an artifact for
// messages, which was opened as kFirstFile and on; SECTION is the part of that file that is the artifact, or empty.
#include <cstdio>
#include <sstream>

#include "artifact/artifact_file.h"
#include "base/error.h"
#include "executors/pipeline/isolation/message.h"
#include "load/artifact.h"
#include "runtime/processors.h"
#include "tools/stage_host/serve.h"

namespace headrace::stage_host {
namespace {

using executors::pipeline::StageCode;

std::vector<int32_t> parse_cpus(const std::string& text) {
  std::vector<int32_t> cpus;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) cpus.push_back(std::stoi(word));
  return cpus;
}

std::shared_ptr<const load::Artifact> open_model(int descriptor, const std::string& name, const std::string& section) {
  Descriptor file(descriptor);
  if (section.empty()) return load::open_artifact(std::move(file), name).value_or_throw();
  const artifact::ArtifactFile content = artifact::read_artifact_file(descriptor, name).value_or_throw();
  const artifact::ElfSection* found = content.elf.find(section);
  if (found == nullptr) throw_user_error("'{}' has no section '{}'", name, section);
  return load::open_artifact(std::move(file), *found, name).value_or_throw();
}

std::shared_ptr<StageCode> make_code(std::span<char*> words) {
  const std::string batch = words[2], fallback = words[3];
  const executors::ExecutorOptions options{
      .threads = std::stoi(words[0]),
      .cpus = parse_cpus(words[1]),
      .fallback = fallback == "none" ? executors::Fallback::none : executors::Fallback::native};
  runtime::move_this_thread(options.cpus);
  std::vector<std::shared_ptr<executors::Executor>> executors;
  int descriptor = executors::pipeline::isolation::kFirstFile;
  for (size_t i = 4; i + 2 < words.size(); i += 3, ++descriptor) {
    const auto model = open_model(descriptor, words[i], words[i + 1]);
    const std::string program = words[i + 2];
    if (program.empty() && model->manifest().programs.empty()) throw_user_error("'{}' has no program", words[i]);
    executors.push_back(
        load::make_executor(model, program.empty() ? model->manifest().programs[0].name : program, options));
  }
  if (batch == "one") return executors::pipeline::make_executor_stage(executors.at(0));
  return executors::pipeline::make_batch_executor_stage(executors, batch == "any");
}

int run(std::span<char*> words) {
  if (words.size() < 7 || words.size() % 3 != 1) {
    std::fputs("headrace-stage-host: pipelines start this program for stages with isolation=\"process\"\n", stderr);
    return 2;
  }
  return serve([&] { return make_code(words); }, {});
}

}  // namespace
}  // namespace headrace::stage_host

int main(int count, char** words) {
  return headrace::stage_host::run(std::span(words + 1, static_cast<size_t>(count > 0 ? count - 1 : 0)));
}
