#include "passes/devices/device_domains.h"

namespace headrace::passes {

Domain DeviceDomains::make_leaf() {
  auto made = std::make_shared<DomainNode>();
  made->set = parent_.size();
  parent_.push_back(made->set);
  device_.emplace_back();
  return made;
}

Domain DeviceDomains::make_tuple(std::vector<Domain> parts) {
  auto made = std::make_shared<DomainNode>();
  made->kind = DomainNode::tuple;
  made->parts = std::move(parts);
  return made;
}

// Types are as deep as kMaxTypeDepth (relay/infer/type_match.h) lets them be.
Domain DeviceDomains::make(const Type& type) {
  const auto* tuple = type.as<TupleTypeNode>();
  const auto* function = type.as<FuncTypeNode>();
  if (tuple == nullptr && function == nullptr) return make_leaf();
  auto made = std::make_shared<DomainNode>();
  made->kind = tuple != nullptr ? DomainNode::tuple : DomainNode::function;
  for (const Type& part : tuple != nullptr ? tuple->items : function->arg_types) made->parts.push_back(make(part));
  if (function != nullptr) made->parts.push_back(make(function->ret_type));
  return made;
}

Domain DeviceDomains::all_of(const Domain& leaf, const Type& type) {
  const auto* tuple = type.as<TupleTypeNode>();
  if (tuple == nullptr) return leaf;
  std::vector<Domain> parts;
  for (const Type& part : tuple->items) parts.push_back(all_of(leaf, part));
  return make_tuple(std::move(parts));
}

Domain DeviceDomains::field(const Domain& domain, size_t index) {
  return domain->kind == DomainNode::leaf ? domain : domain->parts.at(index);
}

std::vector<Domain> DeviceDomains::leaves(const Domain& domain) {
  std::vector<Domain> result, pending{domain};
  while (!pending.empty()) {
    const Domain at = pending.back();
    pending.pop_back();
    if (at->kind == DomainNode::leaf) result.push_back(at);
    pending.insert(pending.end(), at->parts.rbegin(), at->parts.rend());
  }
  return result;
}

size_t DeviceDomains::root(size_t set) {
  while (parent_[set] != set) {
    parent_[set] = parent_[parent_[set]];
    set = parent_[set];
  }
  return set;
}

const std::string& DeviceDomains::device(const Domain& leaf) { return device_[root(leaf->set)]; }

bool DeviceDomains::set_device(const Domain& leaf, const std::string& device) {
  std::string& known = device_[root(leaf->set)];
  if (known.empty()) known = device;
  return known == device;
}

// Paths are halved as they are walked; the smaller number stays the root, so that the order of joins does not show.
bool DeviceDomains::join(const Domain& a, const Domain& b) {
  const size_t x = root(a->set), y = root(b->set);
  if (x == y) return true;
  if (!device_[x].empty() && !device_[y].empty() && device_[x] != device_[y]) return false;
  const size_t to = std::min(x, y), from = std::max(x, y);
  if (device_[to].empty()) device_[to] = device_[from];
  parent_[from] = to;
  return true;
}

void DeviceDomains::set_rest(const std::string& device) {
  for (std::string& known : device_) {
    if (known.empty()) known = device;
  }
}

}  // namespace headrace::passes
