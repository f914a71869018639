// How layout conversion stores a value: in another layout than the one it was written in.
#pragma once

#include <vector>

#include "ir/layout.h"
#include "relay/expr.h"

namespace headrace::ops {

// A written and a stored layout of a value. Letters only distinguish axes: two forms are equal when they store values
// equally. A form without letters stores a value as written.
struct LayoutForm {
  Layout written, stored;               // over the same axes; `written` has no parts
  std::vector<LayoutForm> fields = {};  // those of a tuple, which has no layouts of its own

  bool is_as_written() const;
  bool is_packed() const { return stored.is_packed(); }
  size_t rank() const { return written.rank(); }
  // Returns the form with the letters of `layout`, which has as many axes and no parts.
  LayoutForm with_letters_of(const Layout& layout) const;
  // Returns the form of a tensor that lacks those axes of the written value, which are whole.
  LayoutForm without(const std::vector<size_t>& axes) const;
  bool operator==(const LayoutForm& other) const;

  // Returns the stored dimension of axis `axis` of the written value (negative: counted from the end); of an axis in
  // parts the outermost.
  int64_t outermost(int64_t axis) const;
  // Returns how many elements of the axis one index of that dimension stands for: 1 for an axis that is whole.
  int64_t block(int64_t axis) const;
  // Return that dimension, those of a list of axes in its order; nothing when an axis lies in parts.
  std::optional<int64_t> whole(int64_t axis) const;
  std::optional<Shape> whole(const Shape& axes) const;
};

// Returns whether a tensor with these written dimensions can be stored in `form`: the sizes of axes in parts are known,
// and their factors divide them.
bool can_store(const Array<PrimExpr>& dims, const LayoutForm& form);
// Returns the form in which a tensor of these dimensions is broadcast against one of that form: an axis of one element
// has parts of one. Nothing where there is no such form.
std::optional<LayoutForm> broadcast_form(const Array<PrimExpr>& dims, const LayoutForm& form);

}  // namespace headrace::ops
