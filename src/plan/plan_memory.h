// Memory plan: one arena for all storages of a main in destination passing form. Storages that are never alive at the
// same time share bytes of it.
//
//   %s0 = alloc_storage(256); ... kill(%s0); %s1 = alloc_storage(128); ... kill(%s1)
//   ->
//   %arena = alloc_storage(256); ... views of %s0 and of %s1 are views of %arena at offset 0
//
// Each storage takes the smallest gap that fits, in program order, and only whole lines of 64 bytes; the arena grows
// when none fits. Runs after to_destination_passing, before the emitters. n storages take n log n.
#pragma once

#include "relay/expr.h"

namespace headrace::plan {

IRModule plan_memory(const IRModule& module);

}  // namespace headrace::plan
