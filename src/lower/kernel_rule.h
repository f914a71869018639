// A kernel rule writes an op's loops by hand, for what a compute rule cannot express: sorts, scans, scatters,
// suppression of boxes. An op has one or the other. Ops with a kernel rule are opaque: each is a kernel of its own.
#pragma once

#include "lower/compute_rule.h"
#include "lower/loops/fit_machine.h"

namespace headrace::lower {

// A tensor as hand-written loops access it: a line of elements, dense and row-major, addressed by index.
struct Line {
  Buffer buffer;  // has one dimension
  Shape shape;

  PrimExpr offset(const Index& index) const;
  PrimExpr at(const Index& index) const;
  tir::Stmt set(const Index& index, const PrimExpr& value) const;
  // Access elements by position in row-major order.
  PrimExpr item(const PrimExpr& position) const;
  tir::Stmt set_item(const PrimExpr& position, const PrimExpr& value) const;
  int64_t size() const;
};

// The input of a rule. The machine is not part of it, because the same loops serve every machine; lower/loops/ decides
// which of them run on several threads and whether fma is one instruction.
struct KernelInput {
  const RuleInput& op;
  LoopWork& work;  // each_parallel notes the work of its loop here
  std::vector<Line> inputs, outputs;

  template <typename T>
  const T& attrs() const {
    return op.attrs<T>();
  }
};

// Returns the loops that write all of the outputs. Asserts that an index from the data is in range before using it.
using KernelRuleFn = std::function<tir::Stmt(const KernelInput&)>;
inline constexpr OpKey<KernelRuleFn> kKernelRule{"KernelRule"};

// Returns the kernel of `group` when it is one call of an op with a kernel rule; nothing otherwise.
std::optional<tir::PrimFunc> lower_kernel(const relay::Function& group, const std::string& symbol,
                                          const cost::Machine& machine);

// --- what kernel rules are written with ---

// One number that loops update.
struct Cell {
  Buffer buffer;
  PrimExpr get() const;
  tir::Stmt set(const PrimExpr& value) const;
};

using ByValue = std::function<tir::Stmt(const PrimExpr&)>;
// Makes a loop: for i in [0, extent).
tir::Stmt each(const PrimExpr& extent, const ByValue& body, tir::ForKind kind = tir::ForKind::serial);
tir::Stmt each(int64_t extent, const ByValue& body, tir::ForKind kind = tir::ForKind::serial);
// Makes a loop whose iterations may run at the same time, and notes the `work` of all of them (elements touched).
tir::Stmt each_parallel(const KernelInput& input, int64_t extent, int64_t work, const ByValue& body);
// Makes a nest of loops over all indices of `shape`, the last axis innermost.
tir::Stmt each_index(const Shape& shape, const std::function<tir::Stmt(const Index&)>& body);
// Computes `value` once, before `body`.
tir::Stmt bind(const PrimExpr& value, const ByValue& body);
tir::Stmt with_cell(DataType dtype, const std::function<tir::Stmt(const Cell&)>& body);
// Gives `body` memory of its own, not initialised.
tir::Stmt with_scratch(const char* name, DataType dtype, const Shape& shape,
                       const std::function<tir::Stmt(const Line&)>& body);
// Makes body(index), where a negative `index` (of any integer dtype) counts from the end; the kernel stops for one
// outside [-n, n).
tir::Stmt with_index(const KernelInput& input, const PrimExpr& index, int64_t n, const ByValue& body);

// Views a shape as [outer, size, inner] around one axis.
struct AxisSplit {
  int64_t outer = 1, size = 1, inner = 1;
  AxisSplit(const Shape& shape, size_t axis);
  int64_t lines() const { return outer * inner; }
  // Returns the first position of a line, whose elements are `inner` apart.
  PrimExpr line_begin(const PrimExpr& line) const;
};

}  // namespace headrace::lower
