// Sets of values that are to be on one device.
#pragma once

#include <memory>
#include <string>

#include "ir/type.h"

namespace headrace::passes {

// The devices of a value, in the structure of its type: a tuple's fields may differ, and a function has domains of its
// parameters and its result. A value that holds others in a way that its type does not show (data, references,
// polymorphic values) is one leaf.
struct DomainNode;
using Domain = std::shared_ptr<const DomainNode>;
struct DomainNode {
  enum Kind : uint8_t { leaf, tuple, function } kind = leaf;
  size_t set = 0;             // the set that a leaf belongs to
  std::vector<Domain> parts;  // a function's result is the last
};

class DeviceDomains {
 public:
  // Makes new sets, one for each leaf of the type.
  Domain make(const Type& type);
  Domain make_leaf();
  // Returns the domain of a value whose parts are all on one device.
  static Domain all_of(const Domain& leaf, const Type& type);
  static Domain make_tuple(std::vector<Domain> parts);
  // Returns the domain of a tuple's field; a leaf is the domain of its fields, too.
  static Domain field(const Domain& domain, size_t index);
  static std::vector<Domain> leaves(const Domain& domain);

  // Returns the device that the set is on; empty while nothing says.
  const std::string& device(const Domain& leaf);
  // Sets the device of a set; returns false when it has another one.
  bool set_device(const Domain& leaf, const std::string& device);
  // Joins the two sets; returns false when they are on different devices.
  bool join(const Domain& a, const Domain& b);
  // Sets the device of every set that has none.
  void set_rest(const std::string& device);

 private:
  size_t root(size_t set);
  std::vector<size_t> parent_;
  std::vector<std::string> device_;
};

}  // namespace headrace::passes
