#include "driver/link_artifact.h"

#include <headrace/c_api.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "artifact/check_manifest.h"
#include "artifact/manifest_json.h"
#include "artifact/trailer.h"
#include "base/architecture.h"
#include "base/utf8.h"
#include "base/write_all.h"
#include "codegen/c_source.h"
#include "codegen/object_file.h"
#include "plan/side_file.h"
#include "plan/static_main_tables.h"

namespace headrace::driver {

namespace {

// Pages of a model's weights are pages of the file.
constexpr uint64_t kModelAlignment = 4096;

artifact::Manifest make_manifest(const CompiledCode& code, const plan::SideWeights* side) {
  artifact::Manifest manifest{.programs = code.programs,
                              .weights = code.weights.weights(),
                              .side_file = std::nullopt,
                              .modules = code.modules.rows,
                              .backends = code.backends,
                              .regions = code.regions,
                              .pipeline = code.pipeline,
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

// Returns the message for clients that run the artifact without the runtime library: each feature of the program that
// the static main does not support. Empty if it supports them all.
std::string why_runtime(const artifact::Program& program, const plan::SideWeights* side) {
  std::vector<std::string> reasons;
  if (side != nullptr) reasons.push_back(fmt::format("its weights lie beside it, in '{}'", side->file.name));
  for (const artifact::Step& step : program.graph.steps) {
    if (!artifact::needs_runtime(step.action)) continue;
    reasons.push_back(fmt::format("it calls the function '{}' of an external module or of the process",
                                  artifact::callee_of(step.action)));
    break;  // one will do
  }
  if (!program.bounded_outputs.empty())
    reasons.push_back(fmt::format("the size of its output '{}' is data-dependent",
                                  program.outputs[static_cast<size_t>(program.bounded_outputs[0].output)].name));
  return reasons.empty() ? "" : fmt::format("this file needs libheadrace_rt: {}", fmt::join(reasons, ", and "));
}

std::string main_tables_of(const CompiledCode& code, const plan::SideWeights* side) {
  if (code.programs.empty())
    return plan::static_main_tables(artifact::Program{}, {}, code.target.triple,
                                    "this file is a pipeline, which needs libheadrace_rt");
  return plan::static_main_tables(code.programs[0], code.weights.weights(), code.target.triple,
                                  why_runtime(code.programs[0], side));
}

// Lists the files of machine code of an artifact.
std::vector<codegen::ObjectCode> all_objects(const codegen::NativeCompiler& compiler, const CompiledCode& code,
                                             const plan::SideWeights* side) {
  const std::vector<std::string> main_tables{main_tables_of(code, side)};
  std::vector<codegen::ObjectCode> objects = code.objects;
  for (auto& tables : compiler.compile_llvm(main_tables, code.target, {.opt_level = 0, .jobs = 1}))
    objects.push_back(std::move(tables));
  objects.push_back({"static main", std::string(plan::static_main_object(architecture_of(code.target.triple)))});
  return objects;
}

// Throws UserError for a region whose function no object defines. The linker would name the function alone.
void check_regions_are_defined(const CompiledCode& code, const std::vector<codegen::ObjectCode>& objects) {
  const auto has_symbol = [](const artifact::Region& region) { return !region.symbol.empty(); };
  if (std::none_of(code.regions.begin(), code.regions.end(), has_symbol)) return;
  std::set<std::string> defined;
  for (const codegen::ObjectCode& object : objects) {
    for (std::string& name : codegen::defined_symbols(object, code.target)) defined.insert(std::move(name));
  }
  for (const artifact::Region& region : code.regions) {
    if (!has_symbol(region) || defined.count(region.symbol) > 0) continue;
    throw_user_error(
        "the code of the backend '{}' lacks the function '{}' of the region '{}'; check that its source defines that "
        "function, that it is not static, that it is extern \"C\" in C++, and that no #if leaves it out",
        region.backend, region.symbol, region.name);
  }
}

// Writes the ELF file. If `side` is null, the weights go into it.
artifact::Manifest write_elf(const CompiledCode& code, codegen::LinkForm form, int descriptor, const std::string& name,
                             const plan::SideWeights* side) {
  const codegen::NativeCompiler compiler = codegen::NativeCompiler::load();
  artifact::Manifest manifest = make_manifest(code, side);
  const std::string text = artifact::write_manifest(manifest);
  std::vector<codegen::DataSection> sections;
  if (side == nullptr && !code.weights.weights().empty()) sections.push_back(weights_section(code.weights));
  for (size_t i = 0; i < code.modules.rows.size(); ++i)
    sections.push_back(section_of(code.modules.rows[i].section, code.modules.blobs[i]));
  for (size_t i = 0; i < code.models.size(); ++i) {
    sections.push_back(section_of(code.pipeline->models[i].section, code.models[i]));
    sections.back().alignment = kModelAlignment;
  }
  sections.push_back(section_of(artifact::kManifestSection, text));
  std::vector<std::string> exports{HR_RUN_SYMBOL, plan::kTvmFfiSymbol};
  for (const tir::PrimFunc& kernel : code.kernels) exports.push_back(tir::symbol_of(*kernel));
  for (const artifact::Region& region : code.regions) {
    if (!region.symbol.empty()) exports.push_back(region.symbol);
  }
  const std::vector<codegen::ObjectCode> objects = all_objects(compiler, code, side);
  check_regions_are_defined(code, objects);
  compiler.link({.target = code.target,
                 .form = form,
                 .objects = objects,
                 .sections = sections,
                 .exports = exports,
                 .output = fmt::format("'{}'", name)},
                descriptor);
  return manifest;
}

LinkedArtifact link(const CompiledCode& code, codegen::LinkForm form, int descriptor, const std::string& name,
                    const plan::SideWeights* side) {
  LinkedArtifact linked{.manifest = write_elf(code, form, descriptor, name, side)};
  artifact::append_trailer(descriptor, name);
  linked.nbytes = lseek(descriptor, 0, SEEK_END);
  return linked;
}

LinkedArtifact write_kernel_text(const CompiledCode& code, ModuleFormat format, const OutputFile& file) {
  const std::string text = kernel_text(code, format);
  if (!write_all(file.descriptor(), std::as_bytes(std::span(text))))
    throw_user_error("cannot write '{}': {}", file.target(), std::strerror(errno));
  return {.manifest = make_manifest(code, nullptr), .nbytes = static_cast<int64_t>(text.size())};
}

// Returns the side file's name for the manifest. Throws UserError if it is not UTF-8, because the manifest is text.
std::string plain_name(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  if (!is_utf8(name))
    throw_user_error(
        "cannot write '{}': it holds the weights, and the artifact that names it holds text; choose a name in UTF-8",
        path);
  return name;
}

}  // namespace

void save_external_modules(CompiledCode& code) {
  code.modules = save_modules(code.module_roots);
  for (size_t i = 0; i < code.modules.rows.size(); ++i) {
    for (const NDArray& constant : code.modules.constants[i])
      code.modules.rows[i].constants.push_back(code.weights.add(constant));
  }
  code.modules.constants.clear();  // the table of weights holds them now
  for (size_t i = 0; i < code.regions.size(); ++i) {
    const runtime::Module& module = code.region_modules[i];
    if (!module) continue;
    const auto is_it = [&](const runtime::Module& root) { return root.object() == module.object(); };
    const auto root = std::find_if(code.module_roots.begin(), code.module_roots.end(), is_it);
    HEADRACE_CHECK(root != code.module_roots.end(), "the module of the region '{}' is not saved", code.regions[i].name);
    code.regions[i].module = code.modules.roots[static_cast<size_t>(root - code.module_roots.begin())];
  }
}

LinkedArtifact link_artifact(const CompiledCode& code, int descriptor, const std::string& name) {
  return link(code, codegen::LinkForm::kShared, descriptor, name, nullptr);
}

LinkedArtifact link_artifact(const CompiledCode& code, OutputFile& file, int64_t weights_limit_bytes,
                             const std::vector<std::string>& inputs) {
  if (code.weights.nbytes() <= weights_limit_bytes) {
    LinkedArtifact linked = link(code, codegen::LinkForm::kShared, file.descriptor(), file.target(), nullptr);
    file.commit();
    return linked;
  }
  const std::string path = file.target() + kSideFileSuffix;
  check_no_input(path, inputs, "the model");
  OutputFile side_file(path);
  const plan::SideWeights side = plan::write_side_file(code.weights, side_file.descriptor(), plain_name(path), path);
  LinkedArtifact linked = link(code, codegen::LinkForm::kShared, file.descriptor(), file.target(), &side);
  commit_both(side_file, file);  // an artifact is never without its weights
  return linked;
}

std::string kernel_text(const CompiledCode& code, ModuleFormat format) {
  if (format == ModuleFormat::kC) return codegen::c_source(code.loops);
  const auto form = format == ModuleFormat::kLlvm ? codegen::CodeForm::kLlvm : codegen::CodeForm::kAssembly;
  return codegen::NativeCompiler::load().emit_text(code.kernels, code.target, form, code.opt_level);
}

LinkedArtifact write_module(const CompiledCode& code, ModuleFormat format, OutputFile& file,
                            int64_t weights_limit_bytes, const std::vector<std::string>& inputs) {
  if (format == ModuleFormat::kShared) return link_artifact(code, file, weights_limit_bytes, inputs);
  LinkedArtifact written;
  if (is_text(format)) {
    written = write_kernel_text(code, format, file);
  } else {
    if (code.weights.nbytes() > weights_limit_bytes)
      throw_user_error("cannot write '{}': its weights are {} bytes, and an object takes {}; save the artifact as so",
                       file.target(), code.weights.nbytes(), weights_limit_bytes);
    written = link(code, codegen::LinkForm::kRelocatable, file.descriptor(), file.target(), nullptr);
  }
  file.commit();
  return written;
}

}  // namespace headrace::driver
