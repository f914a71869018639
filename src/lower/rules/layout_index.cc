#include "lower/rules/layout_index.h"

namespace headrace::lower {

PrimExpr AxisIndex::whole() const { return join_parts(parts, factors); }

AxisIndex AxisIndex::split(const Shape& into) const {
  return into == factors ? *this : AxisIndex(split_parts(whole(), into), into);
}

AxisIndex axis_index(const Layout& layout, char letter, const Index& index) {
  Index parts;
  for (const size_t at : layout.positions(letter)) parts.push_back(index[at]);
  return {std::move(parts), layout.factors(letter)};
}

std::vector<AxisIndex> axis_indices(const Layout& layout, std::string_view letters, const Index& index) {
  std::vector<AxisIndex> result;
  for (const char letter : letters) result.push_back(axis_index(layout, letter, index));
  return result;
}

Index whole(const std::vector<AxisIndex>& index) {
  Index result;
  for (const AxisIndex& axis : index) result.push_back(axis.whole());
  return result;
}

PrimExpr load_by_letters(const Buffer& buffer, const Layout& layout, std::string_view letters,
                         const std::vector<AxisIndex>& index) {
  Index place(layout.rank());
  for (size_t i = 0; i < letters.size(); ++i) {
    const AxisIndex axis = index[i].split(layout.factors(letters[i]));
    const std::vector<size_t> positions = layout.positions(letters[i]);
    for (size_t k = 0; k < positions.size(); ++k) place[positions[k]] = axis.parts[k];
  }
  return load(buffer, place);
}

std::vector<PrimExpr> whole_dims(const TensorType& type, const Layout& layout, std::string_view letters) {
  return convert_shape(type->shape, layout, Layout::parse(letters)).to_vector();
}

}  // namespace headrace::lower
