// Copies attributes that are known by the type of their family only: PoolAttrs for MaxPool2DAttrs.
#pragma once

#include "ir/expr.h"

namespace headrace::ops {

// Returns a copy, of the node's own type, that `change` has edited. The types of a family add no members to it.
template <typename Family, typename F>
Ref<Family> copy_of_own_type(const Family& attrs, F&& change) {
  const ObjectRef copy(attrs.type_info().make_empty());
  const auto own = copy.template cast<Family>();
  *own = attrs;
  change(*own);
  return own;
}

}  // namespace headrace::ops
