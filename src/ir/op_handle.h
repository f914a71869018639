// Ops by identity. A handle names an op that Headrace registers, finds it at its first use and compares pointers from
// then on. The handles of all ops that passes ask for are in ops/op_handles.h.
#pragma once

#include <atomic>

#include "ir/expr.h"

namespace headrace {

class OpHandle {
 public:
  // `name` must outlive the handle; a literal does.
  constexpr explicit OpHandle(std::string_view name) : name_(name) {}

  // Returns the registered op. InternalError when there is no op of the name; safe from any thread.
  const OpNode& node() const {
    const OpNode* known = op_.load(std::memory_order_acquire);
    return known != nullptr ? *known : resolve();
  }
  std::string_view name() const { return name_; }
  // Names the op where calls are made: relay::make_call(op::kAdd, ...).
  operator std::string_view() const { return name_; }

  // Returns whether `op`, which may be null, is the op of the handle.
  bool is(const OpNode* op) const { return op != nullptr && op == &node(); }

 private:
  const OpNode& resolve() const;

  std::string_view name_;
  mutable std::atomic<const OpNode*> op_{nullptr};  // built-in ops are never replaced and live as long as the process
};

}  // namespace headrace
