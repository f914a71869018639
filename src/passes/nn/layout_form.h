// How ConvertLayout stores a value: in another layout than the one it was written in.
#pragma once

#include "ir/layout.h"
#include "relay/expr.h"

namespace headrace::passes {

// Axes have letters only to be told apart: forms are equal that store equally. Without letters: as written.
struct LayoutForm {
  Layout written, stored;  // of the same axes; `written` has no parts

  bool is_as_written() const { return written == stored; }
  bool is_packed() const { return stored.is_packed(); }
  size_t rank() const { return written.rank(); }
  // The same with the letters of `layout`, which has as many axes and no parts.
  LayoutForm with_letters_of(const Layout& layout) const;
  bool operator==(const LayoutForm& other) const;

  // Where axis `axis` of the value as written (negative: from its end) stands; of one in parts the outermost.
  int64_t outermost(int64_t axis) const;
  // The same; nothing for an axis in parts.
  std::optional<int64_t> whole(int64_t axis) const;
};

// Whether a tensor of these dimensions, as written, can be stored so: the sizes of axes in parts are known, and their
// factors divide them.
bool can_store(const Array<PrimExpr>& dims, const LayoutForm& form);
// The form in which a tensor of these dimensions meets one of that form in a broadcast: an axis of one element has
// parts of one. Nothing where there is none.
std::optional<LayoutForm> broadcast_form(const Array<PrimExpr>& dims, const LayoutForm& form);

// `expr`, stored in layout `from`, in layout `to`: itself, a transpose, or with parts a layout_transform.
Expr change_layout(const Expr& expr, const Layout& from, const Layout& to, const Span& span);

}  // namespace headrace::passes
