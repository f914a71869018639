// Checks the invariants of a manifest, so that the runtime can use its indices and offsets unchecked.
#pragma once

#include "artifact/manifest.h"

namespace headrace::artifact {

// Throws UserError that names the field (for rule 2 the program) when a rule is broken. The main rules:
//   1. Program names are not empty and differ; so do input names and output names within a program.
//   2. The kernel ABI of a program is within HR_KERNEL_ABI_OLDEST .. HR_KERNEL_ABI_VERSION.
//   3. Shapes have no negative extents, ranks up to kMaxRank, and sizes up to kMaxTensorBytes. If dimensions have
//      names, there is one for each dimension.
//   4. Arenas are of different locations; storages lie within theirs; their offsets and the workspace are multiples of
//      HR_ALIGNMENT.
//   5. Weights: `nbytes` equals the size of dtype and shape, `offset` is a multiple of HR_ALIGNMENT, the hash has 32
//      lower-case hexadecimal digits. When there is a side file, all weights lie within it, and its name is a plain
//      file name.
//   6. Every entry lies within its base, at its base's location, at an offset that is a multiple of its element's size.
//   7. Steps name entries that exist, write at least one of them, and never write a weight or an input; a kernel or
//      import has a name; a copy has two contiguous arguments of one dtype and shape.
//   8. Every output is written by some step.
//   9. Modules import only later modules; section names start with kBlobSectionPrefix.
//  10. Backends have names of their own, and so do regions. A region names a backend; its fallback is empty or names
//      its native program; its body's weights exist.
//  11. A file without programs has a pipeline. Its stages have names of their own and run a program of a model or a
//      function, in a group that exists; each input has a source that exists; the first value of a parameter has its
//      type; models lie in sections of their own, whose names start with kBlobSectionPrefix.
void check_manifest(const Manifest& manifest);

}  // namespace headrace::artifact
