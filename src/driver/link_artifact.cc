#include "driver/link_artifact.h"

#include <headrace/c_api.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "artifact/check_manifest.h"
#include "artifact/manifest_json.h"
#include "artifact/trailer.h"
#include "base/utf8.h"
#include "plan/side_file.h"
#include "plan/static_main_tables.h"

namespace headrace::driver {

namespace {

artifact::Manifest make_manifest(const CompiledCode& code, const plan::SideWeights* side) {
  artifact::Manifest manifest{.programs = {code.program},
                              .weights = code.weights.weights(),
                              .side_file = std::nullopt,
                              .modules = code.modules.rows,
                              .default_threads = code.default_threads};
  if (side != nullptr) {
    manifest.side_file = side->file;
    for (artifact::Weight& weight : manifest.weights) weight.offset += side->data_offset;
  }
  artifact::check_manifest(manifest);  // before the artifact is written: nobody could open it
  return manifest;
}

codegen::DataSection weights_section(const plan::WeightTable& weights) {
  codegen::DataSection section{.name = artifact::kWeightsSection,
                               .size_bytes = static_cast<uint64_t>(weights.nbytes()),
                               .chunks = {},
                               .symbol = plan::kWeightsSymbol};
  uint64_t end = 0;
  for (size_t i = 0; i < weights.weights().size(); ++i) {
    const auto offset = static_cast<uint64_t>(weights.weights()[i].offset);
    if (offset < end || weights.weights()[i].nbytes == 0) continue;  // shares another's bytes
    section.chunks.push_back({offset, weights.tensors()[i].bytes()});
    end = offset + static_cast<uint64_t>(weights.weights()[i].nbytes);
  }
  return section;
}

codegen::DataSection section_of(const std::string& name, std::string_view bytes) {
  return {.name = name, .size_bytes = bytes.size(), .chunks = {{0, std::as_bytes(std::span(bytes))}}, .symbol = ""};
}

// A bare client has no place for what the static main does not do.
bool needs_runtime(const artifact::Program& program) {
  const std::vector<artifact::Step>& steps = program.graph.steps;
  return !program.bounded_outputs.empty() || std::any_of(steps.begin(), steps.end(), [](const auto& step) {
    return step.kind == artifact::StepKind::kExternal;
  });
}

std::vector<codegen::ObjectCode> all_objects(const codegen::NativeCompiler& compiler, const CompiledCode& code,
                                             bool is_for_runtime) {
  const std::vector<std::string> main_tables{
      plan::static_main_tables(code.program, code.weights.weights(), code.target.triple, is_for_runtime)};
  std::vector<codegen::ObjectCode> objects = code.objects;
  for (auto& tables : compiler.compile_llvm(main_tables, code.target, {.opt_level = 0, .jobs = 1}))
    objects.push_back(std::move(tables));
  objects.push_back({"static main", std::string(plan::static_main_object())});
  return objects;
}

// `side` null: the weights go into the file.
LinkedArtifact link(const CompiledCode& code, int descriptor, const std::string& name, const plan::SideWeights* side) {
  const codegen::NativeCompiler compiler = codegen::NativeCompiler::load();
  LinkedArtifact linked{.manifest = make_manifest(code, side)};
  const std::string text = artifact::write_manifest(linked.manifest);
  std::vector<codegen::DataSection> sections;
  if (side == nullptr && !code.weights.weights().empty()) sections.push_back(weights_section(code.weights));
  for (size_t i = 0; i < code.modules.rows.size(); ++i)
    sections.push_back(section_of(code.modules.rows[i].section, code.modules.blobs[i]));
  sections.push_back(section_of(artifact::kManifestSection, text));
  std::vector<std::string> exports{HR_RUN_SYMBOL};
  exports.insert(exports.end(), code.kernels.begin(), code.kernels.end());
  const std::vector<codegen::ObjectCode> objects =
      all_objects(compiler, code, side != nullptr || needs_runtime(code.program));
  compiler.link({.target = code.target,
                 .objects = objects,
                 .sections = sections,
                 .exports = exports,
                 .output = fmt::format("'{}'", name)},
                descriptor);
  artifact::append_trailer(descriptor, name);
  linked.nbytes = lseek(descriptor, 0, SEEK_END);
  return linked;
}

// The side file's name for the manifest, which is text.
std::string plain_name(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  if (!is_utf8(name))
    throw_user_error(
        "cannot write '{}': it holds the weights, and the artifact that names it holds text; choose a name in UTF-8",
        path);
  return name;
}

}  // namespace

LinkedArtifact link_artifact(const CompiledCode& code, int descriptor, const std::string& name) {
  return link(code, descriptor, name, nullptr);
}

LinkedArtifact link_artifact(const CompiledCode& code, OutputFile& file, int64_t weights_limit_bytes,
                             const std::vector<std::string>& inputs) {
  if (code.weights.nbytes() <= weights_limit_bytes) {
    LinkedArtifact linked = link(code, file.descriptor(), file.target(), nullptr);
    file.commit();
    return linked;
  }
  const std::string path = file.target() + kSideFileSuffix;
  check_no_input(path, inputs, "the model");
  OutputFile side_file(path);
  const plan::SideWeights side = plan::write_side_file(code.weights, side_file.descriptor(), plain_name(path), path);
  LinkedArtifact linked = link(code, file.descriptor(), file.target(), &side);
  commit_both(side_file, file);  // an artifact is never without its weights
  return linked;
}

}  // namespace headrace::driver
