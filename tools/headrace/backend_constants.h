// The constants that a file holds for backends alone.
#pragma once

#include <cstdint>
#include <string>

#include "artifact/manifest.h"
#include "tools/headrace/output.h"

namespace headrace::tools {

struct BackendConstants {
  int64_t count = 0;
  int64_t nbytes = 0;
};

// Counts the weights that only external modules take. A backend that replaces the constants of its regions
// (relay.ext.NAME.constant_updater) makes the file larger by them, because the native forms of its regions keep the
// original ones. A constant that a program of the file reads, too, is stored once and not counted.
BackendConstants backend_constants(const artifact::Manifest& manifest);

// Returns {"count": 1, "bytes": 16}.
Value to_value(const BackendConstants& constants);
// Returns "backends add 1 constant of 16 bytes, which the native code does not read"; empty when there are none.
std::string to_text(const BackendConstants& constants);

}  // namespace headrace::tools
