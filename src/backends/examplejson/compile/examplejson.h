// The backend 'examplejson': regions as a graph format of its own, which a module of its own runs.
#pragma once

#include "partition/backend.h"

namespace headrace::backends::examplejson {

// Makes the backend. It takes add, subtract and multiply of float32 tensors of one known shape, none of them constant.
std::shared_ptr<const partition::Backend> make_backend();

}  // namespace headrace::backends::examplejson
