// The passes over regions, as rows of the list of all passes.
#pragma once

#include "pass/pass.h"

namespace headrace::partition {

// Returns AnnotateTarget, MergeCompilerRegions, PartitionGraph, InlineCompilerFunctionsBoundTo,
// OutlineCompilerFunctionsWithExistingGlobalSymbols and MarkCompilerFunctionsAsExtern. They run where they are named.
std::vector<pass::Pass> region_passes();

}  // namespace headrace::partition
