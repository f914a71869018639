// The kinds of modules that the runtime itself makes from bytes.
#pragma once

namespace headrace::load {

// Registers their loaders, once, and from then on refuses others for the kinds and the format that are Headrace's own.
// Whoever opens an artifact has called it.
void register_all_loaders();

}  // namespace headrace::load
