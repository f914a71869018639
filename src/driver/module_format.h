// The file formats of a compiled module, which docs/modules.md describes.
#pragma once

#include <cstdint>
#include <string>

#include "driver/output_file.h"

namespace headrace::driver {

enum class ModuleFormat : uint8_t { kShared, kObject, kLlvm, kAssembly, kC };

// Returns the format named `format`, or if that is empty, the format of the extension of `path`: "so", "o", "ll", "s",
// "asm" or "c". A name without an extension, and a versioned one such as lib.so.1, mean "so". Throws UserError for an
// unknown format (the message lists the formats), and for a name that consists of an extension alone.
ModuleFormat module_format(const std::string& path, const std::string& format = "");

// Returns whether the format is text, which holds the kernels only.
bool is_text(ModuleFormat format);
// Returns the text format with that name; an empty name means "ll". Throws UserError, which lists the text formats, for
// any other name.
ModuleFormat source_format(const std::string& format);

// Returns kProgram for shared objects, which contain executable code, and kData for all other formats.
FileKind file_kind(ModuleFormat format);

}  // namespace headrace::driver
