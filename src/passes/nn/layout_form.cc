#include "passes/nn/layout_form.h"

#include "ops/axis.h"
#include "ops/tensor/rearrange.h"

namespace headrace::passes {

namespace {

// Returns `layout` with another letter for each of `from`.
Layout renamed(const Layout& layout, const std::string& from, const std::string& to) {
  std::string text;
  for (const Layout::Item& item : layout.items()) {
    const char letter = to[from.find(item.letter)];
    text += item.is_part() ? fmt::format("{}{}", item.factor, static_cast<char>(letter - 'A' + 'a'))
                           : std::string(1, letter);
  }
  return Layout::parse(text);
}

}  // namespace

LayoutForm LayoutForm::with_letters_of(const Layout& layout) const {
  return {layout, renamed(stored, written.letters(), layout.letters())};
}

bool LayoutForm::operator==(const LayoutForm& other) const {
  return rank() == other.rank() && (rank() == 0 || other.with_letters_of(written).stored == stored);
}

int64_t LayoutForm::outermost(int64_t axis) const {
  const char letter = written.items()[ops::normal_axis(axis, rank())].letter;
  return static_cast<int64_t>(*stored.find(letter));
}

std::optional<int64_t> LayoutForm::whole(int64_t axis) const {
  const char letter = written.items()[ops::normal_axis(axis, rank())].letter;
  return stored.factors(letter).empty() ? std::optional(outermost(axis)) : std::nullopt;
}

bool can_store(const Array<PrimExpr>& dims, const LayoutForm& form) {
  if (dims.size() != form.rank()) return false;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t factor = form.stored.factor(form.written.items()[i].letter);
    const auto size = as_int(dims[i]);
    if (factor != 1 && (!size || *size % factor != 0)) return false;
  }
  return true;
}

std::optional<LayoutForm> broadcast_form(const Array<PrimExpr>& dims, const LayoutForm& form) {
  if (dims.size() != form.rank()) return std::nullopt;
  std::string text;
  for (const Layout::Item& item : form.stored.items()) {
    const bool is_one = is_int(dims[*form.written.find(item.letter)], 1);
    text += item.is_part() ? fmt::format("{}{}", is_one ? 1 : item.factor, static_cast<char>(item.letter - 'A' + 'a'))
                           : std::string(1, item.letter);
  }
  const LayoutForm result{form.written, Layout::parse(text)};
  return can_store(dims, result) ? std::optional(result) : std::nullopt;
}

Expr change_layout(const Expr& expr, const Layout& from, const Layout& to, const Span& span) {
  if (from == to) return expr;
  return ops::layout_transform(expr, from.text(), to.text(), span);
}

}  // namespace headrace::passes
