// Numbers, small tensors and the data of big constants as text.
#pragma once

#include <map>

#include "tensor/ndarray.h"

namespace headrace::relay {

// Returns the shortest decimal that reads back to the same double: "0.1", "1e-05", "-0", "nan", "-inf".
std::string float_text(double value);
// Returns the scalar as a literal ("1f", "2i64", "True"), a small tensor as `const(Tensor[...], [...])`; nothing when
// the tensor has more than 16 elements, or a dtype or bits without a literal.
std::optional<std::string> inline_constant_text(const NDArray& data);

// The JSON (object/json.h) of nodes without a text form, by their type keys.
using MetaNodes = std::map<std::string, std::vector<std::string>>;

// Collects what meta[KIND][i] stands for in a text: the data of constants and the nodes of other kinds, each content
// once, in order of first use.
class MetaTable {
 public:
  // Returns the index of a constant; `data` must be dense and on the CPU.
  size_t index_of(const NDArray& data);
  // Returns the index of a node among those of its type; UserError where it has no JSON.
  size_t index_of(const ObjectRef& node);
  const std::vector<NDArray>& items() const { return items_; }
  const MetaNodes& nodes() const { return nodes_; }

 private:
  std::vector<NDArray> items_;
  std::unordered_multimap<uint64_t, size_t> by_hash_;
  MetaNodes nodes_;
};

// Prints the block behind the program: "#[metadata]\n{...}\n".
void print_metadata(std::string& out, const std::vector<NDArray>& constants, const MetaNodes& nodes = {});

}  // namespace headrace::relay
