// Reading an artifact as a file: verified, but without running or mapping anything of it. `headrace inspect` needs no
// more than this, and works for files made for other processors and architectures.
#pragma once

#include <string>

#include "artifact/elf_file.h"
#include "artifact/manifest.h"
#include "base/expected.h"

namespace headrace::artifact {

struct ArtifactFile {
  int64_t nbytes = 0;
  ElfFile elf;
  Manifest manifest;
};

// Verifies the trailer, then reads sections and manifest, and checks that the sections the manifest speaks of are
// there. `part` is the artifact's place in an open file, all of it for a file of its own. Refuses with the codes of
// verify_trailer and read_elf_file, or BAD_MANIFEST. `name` is for messages.
Expected<ArtifactFile> read_artifact_file(const FilePart& part, const std::string& name);

}  // namespace headrace::artifact
