// The backend 'ccompiler': regions as C source, compiled by a C compiler of the system and linked into the artifact.
#pragma once

#include "partition/backend.h"

namespace headrace::backends::ccompiler {

// Makes the backend. Its option "cc" names the compiler; the default is the environment's CC, then cc, gcc or clang.
std::shared_ptr<const partition::Backend> make_backend();

}  // namespace headrace::backends::ccompiler
