// The rules of a pipeline's plan.
#pragma once

#include "artifact/manifest.h"

namespace headrace::artifact {

// Throws UserError that names the field when rule 11 of check_manifest.h is broken. The manifest's programs keep
// theirs.
void check_pipeline(const PipelinePlan& plan, const Manifest& manifest);

}  // namespace headrace::artifact
