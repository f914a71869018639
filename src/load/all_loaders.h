// Registers the loaders of the module kinds that the runtime itself implements.
#pragma once

namespace headrace::load {

// Registers the loaders. Only the first call does work. Afterwards, loaders of others for these kinds and for the
// format "so" are refused. Every function that opens an artifact calls it.
void register_all_loaders();

}  // namespace headrace::load
