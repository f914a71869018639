#include "conformance/values.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "base/error.h"

namespace headrace::conformance {

namespace {

// A scalar's empty shape leaves two blanks.
std::string next_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const size_t end = text.find(' ');
  std::string word(text.substr(0, end));
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return word;
}

void set_from(const NDArray& made, int64_t index, const std::string& item, bool was_float) {
  const DataType dtype = made.dtype();
  if (!dtype.is_float() && !was_float) {
    const bool is_negative = item[0] == '-';
    const int64_t value = is_negative ? std::stoll(item) : static_cast<int64_t>(std::stoull(item));
    return set_element_int(made.tensor(), index, value);
  }
  const double given = std::strtod(item.c_str(), nullptr), value = std::isfinite(given) ? given : 1;
  if (dtype.is_float()) return set_element(made.tensor(), index, value);
  if (dtype.is_bool()) return set_element(made.tensor(), index, value > 0 ? 1 : 0);
  const double whole = std::round(value);
  set_element(made.tensor(), index, dtype.is_uint() ? std::abs(whole) : whole);
}

}  // namespace

NDArray random_tensor(const TensorTypeNode& type, std::string_view name, std::mt19937& random) {
  NDArray made = NDArray::zeros(*as_shape(type.shape), type.dtype);
  std::uniform_real_distribution<double> real(-1.5, 1.5);
  std::uniform_int_distribution<int> integer(0, 4);
  for (int64_t i = 0; i < made.num_elements(); ++i) {
    double value = type.dtype.is_float() ? real(random) : integer(random);
    if (type.dtype.is_bool()) value = integer(random) % 2;
    if (name.starts_with('p')) value = std::abs(value) + 0.1;
    set_element(made.tensor(), i, value);
  }
  return made;
}

NDArray given_tensor(const TensorTypeNode& type, std::string_view text) {
  NDArray made = NDArray::zeros(*as_shape(type.shape), type.dtype);
  const bool was_float = DataType::parse(next_word(text)).is_float();
  const size_t rank = std::stoul(next_word(text));
  HEADRACE_CHECK(rank == made.shape().size(), "values of a case have another rank");
  for (size_t i = 0; i < rank; ++i) next_word(text);
  for (int64_t i = 0; i < made.num_elements(); ++i) set_from(made, i, next_word(text), was_float);
  return made;
}

NDArray reversed(const NDArray& tensor) {
  if (!tensor.dtype().is_float()) return tensor;
  NDArray made = NDArray::zeros(tensor.shape(), tensor.dtype());
  const int64_t count = tensor.num_elements();
  for (int64_t i = 0; i < count; ++i) set_element(made.tensor(), i, element_as_double(tensor.tensor(), count - 1 - i));
  return made;
}

}  // namespace headrace::conformance
