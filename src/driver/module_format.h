// The formats that a compiled module is written in: docs/modules.md says what each is.
#pragma once

#include <cstdint>
#include <string>

#include "driver/output_file.h"

namespace headrace::driver {

enum class ModuleFormat : uint8_t { kShared, kObject, kLlvm, kAssembly, kC };

// `format` when it says one, else the ending of `path`: "so" (a name without an ending and one with a version behind
// it, lib.so.1, too), "o", "ll", "s", "asm" or "c". UserError for another, which lists them, and for a name that is an
// ending alone.
ModuleFormat module_format(const std::string& path, const std::string& format = "");

// Whether a format is text, of the kernels alone.
bool is_text(ModuleFormat format);
// The text of that name; empty: "ll". UserError for a format that is no text; it lists those that are.
ModuleFormat source_format(const std::string& format);

// A shared object may be executed, since it is code as it stands.
FileKind file_kind(ModuleFormat format);

}  // namespace headrace::driver
