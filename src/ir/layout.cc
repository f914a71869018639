#include "ir/layout.h"

#include <charconv>
#include <limits>

#include "ir/text_names.h"

namespace headrace {

namespace {

char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }
char lower(char c) { return static_cast<char>(c - 'A' + 'a'); }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw_user_error("'{}' is not a layout: {}; a layout is such as NCHW, NHWC or NCHW16c", text, why);
}

// Reads the number at text[at...] and moves `at` behind it.
int64_t read_factor(std::string_view text, size_t& at) {
  const size_t begin = at;
  while (at < text.size() && is_digit(text[at])) ++at;
  int64_t factor = 0;
  const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + at, factor);
  if (error != std::errc() || factor < 1 || factor > std::numeric_limits<int32_t>::max())
    refuse(text, fmt::format("the factor {} is not between 1 and 2^31 - 1", text.substr(begin, at - begin)));
  if (at == text.size() || !is_lower(text[at]))
    refuse(text, fmt::format("the factor {} stands before no lower-case letter", factor));
  return factor;
}

}  // namespace

Layout Layout::parse(std::string_view text) {
  Layout layout;
  if (text.empty()) refuse(text, "it is empty");
  for (size_t at = 0; at < text.size(); ++at) {
    const int64_t factor = is_digit(text[at]) ? read_factor(text, at) : 0;
    const char c = text[at];
    if (factor == 0 && is_lower(c)) refuse(text, fmt::format("the part '{}' has no factor before it", c));
    if (factor == 0 && !is_upper(c)) refuse(text, fmt::format("'{}' is not a letter", c));
    if (factor == 0 && layout.find(c)) refuse(text, fmt::format("the axis {} stands twice", c));
    layout.items_.push_back({upper(c), factor});
  }
  int64_t elements = 1;
  for (const Item& item : layout.items_) {
    if (!layout.find(item.letter)) refuse(text, fmt::format("the axis {} stands in parts only", item.letter));
    const bool too_large = item.is_part() && __builtin_mul_overflow(elements, item.factor, &elements);
    if (too_large) refuse(text, "the product of its factors is too large");
  }
  return layout;
}

std::string Layout::text() const {
  std::string text;
  for (const Item& item : items_)
    text += item.is_part() ? fmt::format("{}{}", item.factor, lower(item.letter)) : std::string(1, item.letter);
  return text;
}

std::string Layout::letters() const {
  std::string letters;
  for (const Item& item : items_) {
    if (!item.is_part()) letters += item.letter;
  }
  return letters;
}

std::optional<size_t> Layout::find(char letter) const {
  for (size_t i = 0; i < items_.size(); ++i) {
    if (items_[i] == Item{letter, 0}) return i;
  }
  return std::nullopt;
}

int64_t Layout::factor(char letter) const {
  int64_t product = 1;
  for (const Item& item : items_) {
    if (item.letter == letter && item.is_part()) product *= item.factor;
  }
  return product;
}

std::vector<size_t> Layout::positions(char letter) const {
  std::vector<size_t> result;
  for (size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    if (item.letter == letter) result.insert(item.is_part() ? result.end() : result.begin(), i);
  }
  return result;
}

Shape Layout::factors(char letter) const {
  Shape result;
  for (const Item& item : items_) {
    if (item.letter == letter && item.is_part()) result.push_back(item.factor);
  }
  return result;
}

bool Layout::is_packed() const { return letters().size() != items_.size(); }

bool Layout::same_axes(const Layout& other) const {
  std::string a = letters(), b = other.letters();
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}

namespace {

void check_conversion(size_t count, const Layout& from, const Layout& to) {
  if (!from.same_axes(to))
    throw_user_error("layout {} has the axes {}, layout {} has {}", from.text(), from.letters(), to.text(),
                     to.letters());
  if (count != from.rank())
    throw_user_error("layout {} has {} dimensions, but {} are given", from.text(), from.rank(), count);
}

PrimExpr constant_like(int64_t value, const PrimExpr& e) { return make_int(value, e->dtype); }

}  // namespace

PrimExpr join_parts(std::span<const PrimExpr> parts, const Shape& factors) {
  PrimExpr place = parts[0];
  for (size_t i = 0; i < factors.size(); ++i) place = place * factors[i] + parts[i + 1];
  return place;
}

std::vector<PrimExpr> split_parts(const PrimExpr& place, const Shape& factors) {
  std::vector<PrimExpr> parts(factors.size() + 1);
  int64_t inner = 1;  // product of the parts inside this one
  for (size_t i = parts.size(); i-- > 0;) {
    const PrimExpr outer = inner == 1 ? place : floor_div(place, constant_like(inner, place));
    parts[i] = i == 0 ? outer : floor_mod(outer, constant_like(factors[i - 1], outer));
    if (i > 0) inner *= factors[i - 1];
  }
  return parts;
}

Array<PrimExpr> map_index(const Array<PrimExpr>& indices, const Layout& from, const Layout& to) {
  check_conversion(indices.size(), from, to);
  std::vector<PrimExpr> result(to.rank());
  for (const char letter : to.letters()) {
    std::vector<PrimExpr> parts;
    for (const size_t at : from.positions(letter)) parts.push_back(indices[at]);
    if (from.factors(letter) != to.factors(letter))
      parts = split_parts(join_parts(parts, from.factors(letter)), to.factors(letter));
    const std::vector<size_t> positions = to.positions(letter);
    for (size_t k = 0; k < positions.size(); ++k) result[positions[k]] = parts[k];
  }
  return Array<PrimExpr>(result);
}

Array<PrimExpr> convert_shape(const Array<PrimExpr>& dims, const Layout& from, const Layout& to) {
  check_conversion(dims.size(), from, to);
  for (size_t i = 0; i < from.rank(); ++i) {
    const Layout::Item& item = from.items()[i];
    if (item.is_part() && !is_int(dims[i], item.factor))
      throw_user_error("dimension {} of layout {} is {}, but its part {}{} says {}", i, from.text(), to_string(dims[i]),
                       item.factor, lower(item.letter), item.factor);
  }
  Array<PrimExpr> result;
  for (const Layout::Item& item : to.items()) {
    if (item.is_part()) {
      result.push_back(make_int(item.factor));
      continue;
    }
    const PrimExpr extent = dims[*from.find(item.letter)];
    const int64_t had = from.factor(item.letter), wanted = to.factor(item.letter);
    if (had == wanted) {
      result.push_back(extent);
      continue;
    }
    const PrimExpr whole = extent * had;
    if (const auto known = as_int(whole); known && *known % wanted != 0)
      throw_user_error("the axis {} of {} elements does not split into parts of {} (layout {}); pad it first",
                       item.letter, *known, wanted, to.text());
    result.push_back(wanted == 1 ? whole : floor_div(whole, constant_like(wanted, whole)));
  }
  return result;
}

}  // namespace headrace
