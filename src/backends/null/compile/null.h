// The backend 'null', which takes no op: the start of another backend (../README.md).
#pragma once

#include "partition/backend.h"

namespace headrace::backends::null {

// Makes the backend. It refuses each op and each region.
std::shared_ptr<const partition::Backend> make_backend();

}  // namespace headrace::backends::null
