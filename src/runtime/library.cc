#include "runtime/library.h"

#include <cstdlib>

#include "base/architecture.h"
#include "runtime/cpu_features.h"
#include "runtime/side_file.h"

namespace headrace::runtime {
namespace {

// The folder of a path with its final slash, or nothing for a plain name.
std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

ConstantBytes weights_of(const artifact::ArtifactFile& file) {
  const artifact::ElfSection* section = file.elf.find(artifact::kWeightsSection);
  if (section == nullptr || !section->is_mapped) return {};
  return {section->offset, section->address, section->nbytes};
}

Refusal other_architecture(const std::string& what, std::string_view architecture) {
  return {HR_REASON_CPU_FEATURE_MISSING,
          fmt::format("{} holds code for {}, and this machine is {}; run it on a machine of that kind, or compile the "
                      "model for this one",
                      what, architecture, kHostArchitecture)};
}

// Returns why none of the programs can run here; a file is usable when one can.
std::optional<Refusal> no_program_runs(const artifact::ArtifactFile& file, const std::string& name) {
  const artifact::Manifest& manifest = file.manifest;
  if (manifest.programs.empty())
    return Refusal{HR_REASON_NOT_FOUND,
                   fmt::format("'{}' is a pipeline of {} stages, not a model; run it with headrace.pipeline.load in "
                               "Python, or with headrace pipeline run",
                               name, manifest.pipeline->stages.size())};
  if (file.elf.architecture != kHostArchitecture)
    return other_architecture(fmt::format("'{}'", name), file.elf.architecture);
  std::optional<Refusal> first;
  for (const artifact::Program& program : manifest.programs) {
    std::optional<Refusal> refusal = cpu_refusal(program, name);
    if (!refusal) return std::nullopt;
    if (!first) first = std::move(refusal);
  }
  return first;
}

// Returns the target of `name`, symbolic links followed; `name` itself when it leads to no file.
std::string real_path(const std::string& name) {
  const std::unique_ptr<char, decltype(&std::free)> path(::realpath(name.c_str(), nullptr), &std::free);
  return path == nullptr ? name : path.get();
}

// Finds the side file beside `name`; where `name` is a link, also beside the file that it leads to.
Expected<std::shared_ptr<const MappedFile>> find_side_file(const std::string& name, const artifact::SideFile& file) {
  auto beside = map_side_file(folder_of(name), file);
  if (beside || beside.refusal().code != HR_REASON_NOT_FOUND) return beside;
  auto behind = map_side_file(folder_of(real_path(name)), file);
  return behind || behind.refusal().code != HR_REASON_NOT_FOUND ? behind : beside;
}

}  // namespace

std::optional<Refusal> cpu_refusal(const artifact::Program& program, const std::string& artifact_name) {
  if (is_for_another_architecture(program.target.triple))
    return other_architecture(fmt::format("program '{}' of '{}'", program.name, artifact_name),
                              architecture_of(program.target.triple));
  const std::vector<std::string> missing = missing_features(program.target.features, host_cpu_features());
  if (missing.empty()) return std::nullopt;
  return Refusal{
      HR_REASON_CPU_FEATURE_MISSING,
      fmt::format("program '{}' of '{}' was compiled for '{}' and needs CPU features that this machine lacks: "
                  "{}; compile the model for this machine",
                  program.name, artifact_name, program.target.cpu, fmt::join(missing, ", "))};
}

Expected<std::shared_ptr<const Library>> Library::open(const std::string& path) {
  Expected<Descriptor> descriptor = Descriptor::open(path);
  if (!descriptor) return descriptor.refusal();
  return open(std::move(descriptor.value()), path);
}

Expected<std::shared_ptr<const Library>> Library::open(Descriptor descriptor, const std::string& name) {
  const artifact::FilePart whole(descriptor.number());
  return open_part(std::move(descriptor), whole, name);
}

Expected<std::shared_ptr<const Library>> Library::open(Descriptor descriptor, const artifact::ElfSection& section,
                                                       const std::string& name) {
  const artifact::FilePart part(descriptor.number(), section.offset, section.nbytes);
  return open_part(std::move(descriptor), part, name);
}

Expected<std::shared_ptr<const Library>> Library::open_part(Descriptor descriptor, const artifact::FilePart& part,
                                                            const std::string& name) {
  Expected<artifact::ArtifactFile> file = artifact::read_artifact_file(part, name);
  if (!file) return file.refusal();
  const artifact::Manifest& manifest = file.value().manifest;
  if (std::optional<Refusal> refusal = no_program_runs(file.value(), name)) return *std::move(refusal);
  std::shared_ptr<const MappedFile> side_file;
  if (manifest.side_file) {
    auto mapped = find_side_file(name, *manifest.side_file);
    if (!mapped) return mapped.refusal();
    side_file = std::move(mapped.value());
  }
  Expected<SharedCode> code =
      SharedCode::map(std::move(descriptor), part.begin, file.value().nbytes, weights_of(file.value()), name);
  if (!code) return code.refusal();
  return std::shared_ptr<const Library>(
      new Library(name, std::move(file.value()), std::move(code.value()), std::move(side_file)));
}

Library::Library(std::string name, artifact::ArtifactFile file, SharedCode code,
                 std::shared_ptr<const MappedFile> side_file)
    : name_(std::move(name)), file_(std::move(file)), code_(std::move(code)), side_file_(std::move(side_file)) {
  if (side_file_ != nullptr) {
    weights_ = side_file_->bytes().data();
  } else if (const artifact::ElfSection* section = file_.elf.find(artifact::kWeightsSection); section != nullptr) {
    weights_ = code_.load_address() + section->address;
  }
}

const std::byte* Library::weight(size_t index) const { return weights_ + file_.manifest.weights.at(index).offset; }

Expected<std::string> Library::blob(size_t index) const {
  // That the section is there was checked when the file was read.
  const artifact::ElfSection* section = file_.elf.find(file_.manifest.modules.at(index).section);
  return artifact::read_section(code_.descriptor(), *section, name_);
}

Expected<std::string> Library::bytes() const {
  const artifact::ElfSection whole{.name = "", .offset = 0, .nbytes = file_.nbytes};
  Expected<std::string> bytes = artifact::read_section(code_.descriptor(), whole, name_);
  if (!bytes) return bytes;
  // The descriptor may have zeros for the weights, which lie in memory.
  if (const artifact::ElfSection* weights = file_.elf.find(artifact::kWeightsSection); weights != nullptr)
    bytes.value().replace(static_cast<size_t>(weights->offset), static_cast<size_t>(weights->nbytes),
                          reinterpret_cast<const char*>(code_.load_address() + weights->address),
                          static_cast<size_t>(weights->nbytes));
  return bytes;
}

}  // namespace headrace::runtime
