#include "artifact/artifact_file.h"

#include "artifact/manifest_json.h"
#include "artifact/trailer.h"

namespace headrace::artifact {
namespace {

Refusal bad_manifest(const std::string& name, const std::string& why) {
  return {HR_REASON_BAD_MANIFEST, fmt::format("'{}': {}", name, why)};
}

Expected<Manifest> read_manifest_section(const FilePart& part, const ElfFile& elf, const std::string& name) {
  const ElfSection* section = elf.find(kManifestSection);
  if (section == nullptr) {
    return Refusal{HR_REASON_NOT_AN_ARTIFACT,
                   fmt::format("'{}' is not an artifact of Headrace: it has no section '{}'", name, kManifestSection)};
  }
  const Expected<std::string> text = read_section(part, *section, name);
  if (!text) return text.refusal();
  try {
    return read_manifest(text.value());
  } catch (const UserError& error) {
    return bad_manifest(name, error.message());
  }
}

// The names of the sections that hold modules and models.
std::vector<std::string> blobs_of(const Manifest& manifest) {
  std::vector<std::string> names;
  for (const ExternalModule& module : manifest.modules) names.push_back(module.section);
  if (!manifest.pipeline) return names;
  for (const PipelineModel& model : manifest.pipeline->models) names.push_back(model.section);
  return names;
}

std::optional<Refusal> check_sections(const ArtifactFile& file, const std::string& name) {
  for (const std::string& section : blobs_of(file.manifest)) {
    if (file.elf.find(section) == nullptr)
      return bad_manifest(name,
                          fmt::format("its manifest names a section '{}', which the file does not have", section));
  }
  if (file.manifest.weights.empty() || file.manifest.side_file) return std::nullopt;
  const ElfSection* weights = file.elf.find(kWeightsSection);
  if (weights == nullptr || !weights->is_mapped)
    return bad_manifest(
        name,
        fmt::format("its weights should be in a mapped section '{}', which the file does not have", kWeightsSection));
  if (weights->address % HR_ALIGNMENT != 0)
    return bad_manifest(name,
                        fmt::format("its section '{}' is not aligned to {} bytes", kWeightsSection, HR_ALIGNMENT));
  for (size_t i = 0; i < file.manifest.weights.size(); ++i) {
    const Weight& weight = file.manifest.weights[i];
    if (weight.nbytes > weights->nbytes || weight.offset > weights->nbytes - weight.nbytes)
      return bad_manifest(name, fmt::format("weights[{}] covers {} bytes at {}, outside the section's {} bytes", i,
                                            weight.nbytes, weight.offset, weights->nbytes));
  }
  return std::nullopt;
}

}  // namespace

Expected<ArtifactFile> read_artifact_file(const FilePart& part, const std::string& name) {
  const Expected<int64_t> nbytes = verify_trailer(part, name);
  if (!nbytes) return nbytes.refusal();
  Expected<ElfFile> elf = read_elf_file(part, nbytes.value(), name);
  if (!elf) return elf.refusal();
  Expected<Manifest> manifest = read_manifest_section(part, elf.value(), name);
  if (!manifest) return manifest.refusal();
  ArtifactFile file{.nbytes = nbytes.value(), .elf = std::move(elf.value()), .manifest = std::move(manifest.value())};
  if (std::optional<Refusal> refusal = check_sections(file, name)) return *std::move(refusal);
  return file;
}

}  // namespace headrace::artifact
