#include "ir/env_func.h"

namespace headrace {

void EnvFuncNode::fields(FieldList<EnvFuncNode>& f) {
  f.field<&EnvFuncNode::name>("name", {.doc = "the name of a global function"});
}

}  // namespace headrace
