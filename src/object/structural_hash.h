// Structural hash: agrees with structural equality under the same options, and is the same in every process, except
// where identity counts: free variables that are not mapped, and nodes of kind `unique`, which hash by address.
//
// Sharing does not enter: two graphs that differ only in what is shared have one hash and are not equal.
#pragma once

#include "object/value.h"

namespace headrace {

struct StructuralOptions {
  // Free variables of the two sides may correspond one to one; otherwise a free variable is equal only to itself.
  bool map_free_vars = false;
};

// Returns the hash. Linear in the number of nodes reached; constant stack.
uint64_t structural_hash(const Value& value, StructuralOptions options = {});

namespace detail {
// Returns the hash of a number, string, dtype, device or pointer; and of an object with a content hook.
uint64_t leaf_hash(const RawValue& raw);
bool leaf_equal(const RawValue& a, const RawValue& b);
// Returns whether a value contains no other values.
bool is_leaf(const RawValue& raw);
// Returns the hash of a map's key alone, by which keys find their partners and their place in the hash of the map. Maps
// within such a key count their entries in the order of insertion, so that this hash is never nested in itself.
uint64_t key_hash_alone(const Value& key, StructuralOptions options);
}  // namespace detail

}  // namespace headrace
