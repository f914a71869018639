#include "ops/layout_form.h"

#include <algorithm>

#include "ops/axis.h"

namespace headrace::ops {

namespace {

std::string text_of(const Layout::Item& item) {
  return item.is_part() ? fmt::format("{}{}", item.factor, static_cast<char>(item.letter - 'A' + 'a'))
                        : std::string(1, item.letter);
}

// Returns `layout` with another letter for each of `from`.
Layout renamed(const Layout& layout, const std::string& from, const std::string& to) {
  std::string text;
  for (const Layout::Item& item : layout.items()) {
    text += text_of({to[from.find(item.letter)], item.factor});
  }
  return Layout::parse(text);
}

}  // namespace

bool LayoutForm::is_as_written() const {
  return written == stored &&
         std::all_of(fields.begin(), fields.end(), [](const LayoutForm& field) { return field.is_as_written(); });
}

LayoutForm LayoutForm::with_letters_of(const Layout& layout) const {
  return {layout, renamed(stored, written.letters(), layout.letters())};
}

LayoutForm LayoutForm::without(const std::vector<size_t>& axes) const {
  std::string dropped;
  for (const size_t axis : axes) dropped += written.items()[axis].letter;
  const auto rest = [&](const Layout& layout) {
    std::string text;
    for (const Layout::Item& item : layout.items()) {
      if (dropped.find(item.letter) == std::string::npos) text += text_of(item);
    }
    return text.empty() ? Layout() : Layout::parse(text);
  };
  return {rest(written), rest(stored)};
}

bool LayoutForm::operator==(const LayoutForm& other) const {
  return rank() == other.rank() && fields == other.fields &&
         (rank() == 0 || other.with_letters_of(written).stored == stored);
}

int64_t LayoutForm::outermost(int64_t axis) const {
  const char letter = written.items()[normal_axis(axis, rank())].letter;
  return static_cast<int64_t>(*stored.find(letter));
}

int64_t LayoutForm::block(int64_t axis) const {
  return stored.factor(written.items()[normal_axis(axis, rank())].letter);
}

std::optional<int64_t> LayoutForm::whole(int64_t axis) const {
  const char letter = written.items()[normal_axis(axis, rank())].letter;
  return stored.factors(letter).empty() ? std::optional(outermost(axis)) : std::nullopt;
}

std::optional<Shape> LayoutForm::whole(const Shape& axes) const {
  Shape result;
  for (const int64_t axis : axes) {
    const auto at = whole(axis);
    if (!at) return std::nullopt;
    result.push_back(*at);
  }
  return result;
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
    text += text_of({item.letter, item.is_part() && is_one ? 1 : item.factor});
  }
  const LayoutForm result{form.written, Layout::parse(text)};
  return can_store(dims, result) ? std::optional(result) : std::nullopt;
}

}  // namespace headrace::ops
