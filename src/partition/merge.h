// MergeCompilerRegions: joins annotated parts of one compiler that hand values to each other, as far as no path leaves
// the joined part and comes back.
//
//   end(exp(begin(end(abs(begin(%x))))))   ->   end(exp(abs(begin(%x))))
//
// Looks for few parts (graph/merge_regions.h). Parts that stay in the program ("default") are joined last, so that they
// separate no others; those of a backend whose regions have one call each are not joined. Tuples that only connect
// parts of one compiler become part of them. Run it between AnnotateTarget and PartitionGraph. Preserves results to the
// last bit. Needs types. UserError for annotations that read_annotations() refuses, and for a part that a path leaves
// and enters again.
#pragma once

#include "ir/module.h"

namespace headrace::partition {

IRModule merge_compiler_regions(const IRModule& module);

}  // namespace headrace::partition
