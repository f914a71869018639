// The JSON text of a manifest. It has every field, in the order of manifest.h, so that equal manifests give equal
// bytes.
#pragma once

#include <string>
#include <string_view>

#include "artifact/manifest.h"

namespace headrace::artifact {

// Writes the JSON of `manifest`, which must keep the rules of check_manifest.h.
std::string write_manifest(const Manifest& manifest);

// Parses the JSON strictly. Fields that an older supported version lacks get their default values first. An unknown,
// missing or duplicate field, a wrong type, a number out of range, a version outside kManifestOldest ..
// kManifestVersion, or a broken rule of check_manifest.h is a UserError that names the field as a path, such as
// `programs[0].graph.steps[3].args[1]`. White space after the text is allowed (sections are padded).
Manifest read_manifest(std::string_view text);

}  // namespace headrace::artifact
