// The file of weights beside an artifact.
#pragma once

#include "artifact/manifest.h"
#include "base/mapped_file.h"

namespace headrace::runtime {

// Maps the side file in folder `folder`, after its length and checksum were found right. Refuses with NOT_FOUND,
// TRUNCATED, BAD_CHECKSUM or SYSTEM.
Expected<std::shared_ptr<const MappedFile>> map_side_file(const std::string& folder,
                                                          const artifact::SideFile& side_file);

}  // namespace headrace::runtime
