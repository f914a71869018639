// Writes what a compile made into the rows of the manifest.
#pragma once

#include "driver/compile_regions.h"
#include "driver/link_artifact.h"
#include "driver/native_programs.h"

namespace headrace::driver {

// Adds the row of a program, whose kernels are lowered, to `code`, and returns it; it is valid until the next one is
// added. The row lacks what only the model's own program has: parameters, placement and notes.
artifact::Program& emit_program(const NativeProgram& source, CompiledCode& code);

// Adds the row of a region, whose program is emitted where it has a native form.
void emit_region(const partition::Region& region, const CompiledRegion& compiled, CompiledCode& code);

artifact::CompileNote to_note(const pass::PassNote& note);
artifact::BoundParam bound_param(const std::string& name, const NDArray& data);

// Notes why ops that users registered were not fused with others.
void note_unfused(const plan::Program& plan, std::vector<artifact::CompileNote>& notes);

}  // namespace headrace::driver
