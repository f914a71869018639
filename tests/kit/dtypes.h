// Short names of the dtypes that tests use most.
#pragma once

#include "tensor/data_type.h"

namespace headrace::kit {

inline constexpr DataType kF32 = DataType::float_(32), kI32 = DataType::int_(32), kI64 = DataType::int_(64);

}  // namespace headrace::kit
