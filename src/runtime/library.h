// An artifact in memory: a verified file, mapped as a shared library.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "artifact/artifact_file.h"
#include "base/mapped_file.h"
#include "runtime/shared_code.h"

namespace headrace::runtime {

// An open artifact: its manifest, code and weights. Immutable; threads share it. The file is opened once: everything is
// read, verified and mapped through that one descriptor. Two openings of one file share code and weights.
class Library {
 public:
  // Opens, verifies and maps a file. Refuses with a message that says what is wrong and what to do: NOT_FOUND,
  // NOT_AN_ARTIFACT, TRUNCATED, BAD_MAGIC, BAD_VERSION, BAD_CHECKSUM, BAD_MANIFEST, SYSTEM; and CPU_FEATURE_MISSING
  // when this machine can run none of its programs or is of another architecture; NOT_FOUND for a pipeline, which has
  // none of its own.
  static Expected<std::shared_ptr<const Library>> open(const std::string& path);
  // Opens a file by its descriptor, such as a memfd. `name` is for messages; a side file of weights is looked for in
  // its folder, then in the folder of the file that it links to.
  static Expected<std::shared_ptr<const Library>> open(Descriptor descriptor, const std::string& name);
  // Opens the artifact that `section`, of another artifact behind the descriptor, holds.
  static Expected<std::shared_ptr<const Library>> open(Descriptor descriptor, const artifact::ElfSection& section,
                                                       const std::string& name);

  const std::string& name() const { return name_; }
  const artifact::Manifest& manifest() const { return file_.manifest; }

  // Returns the address of an exported symbol; nullptr when there is none.
  void* symbol(const std::string& name) const { return code_.symbol(name.c_str()); }
  // Start of weight `index` of the manifest, in mapped memory: nothing is read before it is used.
  const std::byte* weight(size_t index) const;
  // Returns the bytes of the external module `index` of the manifest, read from the file.
  Expected<std::string> blob(size_t index) const;
  // Returns the bytes of the file, as it was opened.
  Expected<std::string> bytes() const;

 private:
  static Expected<std::shared_ptr<const Library>> open_part(Descriptor descriptor, const artifact::FilePart& part,
                                                            const std::string& name);
  Library(std::string name, artifact::ArtifactFile file, SharedCode code, std::shared_ptr<const MappedFile> side_file);

  std::string name_;
  artifact::ArtifactFile file_;
  SharedCode code_;
  std::shared_ptr<const MappedFile> side_file_;  // nullptr: the weights lie in the artifact
  const std::byte* weights_ = nullptr;
};

// Returns why this machine cannot run `program`: it is of another architecture than the program's triple, or its CPU
// lacks features. Nothing when it can.
std::optional<Refusal> cpu_refusal(const artifact::Program& program, const std::string& artifact_name);

}  // namespace headrace::runtime
