#include "driver/seal_library.h"

#include <cerrno>
#include <cstring>

#include "artifact/artifact_file.h"
#include "artifact/trailer.h"
#include "base/descriptor.h"
#include "base/mapped_file.h"
#include "base/write_all.h"
#include "driver/output_file.h"

namespace headrace::driver {

void seal_library(const std::string& library, const std::string& path) {
  const auto source = MappedFile::open(library, "linked library");
  const Descriptor descriptor = Descriptor::open(library).value_or_throw();
  const bool is_sealed = static_cast<bool>(artifact::verify_trailer(descriptor.number(), library));
  OutputFile output(path, FileKind::kProgram);
  if (!write_all(output.descriptor(), source->bytes()))
    throw_user_error("cannot write '{}': {}", path, std::strerror(errno));
  if (!is_sealed) artifact::append_trailer(output.descriptor(), path);
  artifact::read_artifact_file(output.descriptor(), library).value_or_throw();
  output.commit();
}

}  // namespace headrace::driver
