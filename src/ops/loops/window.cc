#include "ops/loops/window.h"

#include "arith/canonical.h"
#include "ops/loops/dims.h"

namespace headrace::ops {

namespace {
// Products and sums of sizes below this do not overflow.
constexpr int64_t kSizeLimit = int64_t{1} << 31;
}  // namespace

Window window_of(size_t rank, const Shape& strides, const Shape& padding, const Shape& dilation) {
  Window window{strides, dilation, Shape(rank), Shape(rank)};
  for (size_t i = 0; i < rank; ++i) {
    window.pad_begin[i] = padding[padding.size() == 1 ? 0 : i];
    window.pad_end[i] = padding[padding.size() == 1 ? 0 : padding.size() == rank ? i : rank + i];
  }
  return window;
}

void check_sizes(const RelationInput& input, std::string_view name, const Shape& values, size_t count, int64_t least) {
  if (values.size() != count) {
    input.fail(fmt::format("{} must have {} values, got ({})", name, count, fmt::join(values, ", ")));
  }
  for (int64_t value : values) {
    if (value < least || value >= kSizeLimit) {
      input.fail(fmt::format("{} must be at least {} and below 2^31, got ({})", name, least, fmt::join(values, ", ")));
    }
  }
}

Window make_window(const RelationInput& input, size_t rank, const Shape& strides, const Shape& padding,
                   const Shape& dilation) {
  check_sizes(input, "strides", strides, rank, 1);
  check_sizes(input, "dilation", dilation, rank, 1);
  if (padding.size() != 1 && padding.size() != rank && padding.size() != 2 * rank) {
    input.fail(fmt::format("padding must have 1, {} or {} values, got ({})", rank, 2 * rank, fmt::join(padding, ", ")));
  }
  check_sizes(input, "padding", padding, padding.size(), 0);
  return window_of(rank, strides, padding, dilation);
}

PrimExpr window_count(const RelationInput& input, const Window& window, size_t i, const PrimExpr& size, int64_t kernel,
                      int64_t beyond) {
  const int64_t reach = (kernel - 1) * window.dilation[i] + 1;
  const int64_t pads = window.pad_begin[i] + window.pad_end[i];
  if (const auto known = as_int(size); known && *known < reach - pads - beyond) {
    input.fail(
        fmt::format("a kernel of {} taps with dilation {} reaches over {}, but spatial axis {} has {} with {} of "
                    "padding",
                    kernel, window.dilation[i], reach, i, *known, pads));
  }
  const PrimExpr last = add_const(size, pads + beyond - reach);
  if (window.strides[i] == 1) return add_const(last, 1);
  return floor_div(last, make_int(window.strides[i])) + 1;
}

std::string_view letters_of(size_t spatial) {
  static constexpr std::string_view kLetters[] = {"NCW", "NCHW", "NCDHW"};
  return kLetters[spatial - 1];
}

std::vector<size_t> axes_of(std::string_view layout, std::string_view letters) {
  const Layout parsed = Layout::parse(layout);
  std::vector<size_t> axes;
  for (const char letter : letters) {
    const auto at = parsed.find(letter);
    HEADRACE_CHECK(at.has_value(), "layout {} has no axis {}", layout, letter);
    axes.push_back(*at);
  }
  return axes;
}

std::string layout_fault(std::string_view layout, std::string_view letters, std::string_view in_parts) {
  try {
    const Layout parsed = Layout::parse(layout);
    for (const Layout::Item& item : parsed.items()) {
      if (item.is_part() && in_parts.find(item.letter) == std::string_view::npos)
        return fmt::format("; its axis {} cannot lie in parts", item.letter);
    }
    return parsed.same_axes(Layout::parse(letters)) ? "" : fmt::format("; its axes are {}", parsed.letters());
  } catch (const UserError& error) {
    return ": " + error.message();
  }
}

Layout check_layout(const RelationInput& input, std::string_view name, std::string_view layout,
                    std::string_view letters, std::string_view in_parts) {
  const std::string fault = layout_fault(layout, letters, in_parts);
  if (!fault.empty())
    input.fail(fmt::format("{} must be an order of the letters {}, got '{}'{}", name, letters, layout, fault));
  return Layout::parse(layout);
}

std::vector<PrimExpr> whole_dims(const RelationInput& input, const Array<PrimExpr>& dims, const Layout& layout,
                                 std::string_view letters) {
  try {
    std::vector<PrimExpr> whole = convert_shape(dims, layout, Layout::parse(letters)).to_vector();
    for (size_t i = 0; i < whole.size(); ++i) {
      if (layout.factor(letters[i]) != 1) whole[i] = result_dim(input, whole[i]);
    }
    return whole;
  } catch (const UserError& error) {
    input.fail(error.message());
  }
}

Array<PrimExpr> dims_in_layout(const RelationInput& input, const std::vector<PrimExpr>& dims, std::string_view letters,
                               const Layout& layout) {
  try {
    Array<PrimExpr> result = convert_shape(Array<PrimExpr>(dims), Layout::parse(letters), layout);
    // Divides the products that whole_dims made again, symbols included.
    for (size_t i = 0; i < dims.size(); ++i) {
      const int64_t factor = layout.factor(letters[i]);
      const auto parts = factor == 1 ? std::nullopt : arith::divide_exactly(dims[i], make_int(factor));
      if (parts) result.set(*layout.find(letters[i]), *parts);
    }
    return result;
  } catch (const UserError& error) {
    input.fail(error.message());
  }
}

PooledData check_pooled(const RelationInput& input, const TensorType& data, std::string_view layout,
                        const std::string& out_layout, std::string_view letters) {
  const Layout parsed = check_layout(input, "layout", layout, letters, kPackedAxes);
  if (data->shape.size() != parsed.rank())
    input.fail(fmt::format("data must have {} dimensions ({}), got {}", parsed.rank(), layout, show(data)));
  if (data->dtype.is_bool()) input.fail(fmt::format("data must be numbers, got {}", show(data)));
  return {whole_dims(input, data->shape, parsed, letters),
          check_layout(input, "out_layout", layout_or(out_layout, layout), letters, kPackedAxes)};
}

std::vector<size_t> layout_axes(const RelationInput& input, std::string_view name, std::string_view layout,
                                std::string_view letters) {
  check_layout(input, name, layout, letters);
  return axes_of(layout, letters);
}

}  // namespace headrace::ops
