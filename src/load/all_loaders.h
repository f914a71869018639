// The kinds of modules that the runtime itself makes from bytes.
#pragma once

namespace headrace::load {

// Registers their loaders, once. Whoever opens an artifact has called it.
void register_all_loaders();

}  // namespace headrace::load
