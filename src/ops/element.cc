#include "ops/element.h"

namespace headrace::ops {

void fail_no_eval(DataType dtype) { throw_user_error("reference evaluation has no elements of dtype {} here", dtype); }

}  // namespace headrace::ops
