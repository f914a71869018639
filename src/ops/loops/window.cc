#include "ops/loops/window.h"

#include "ir/layout.h"
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

std::vector<size_t> layout_axes(const RelationInput& input, std::string_view name, std::string_view layout,
                                std::string_view letters) {
  std::string why;
  try {
    const Layout parsed = Layout::parse(layout);
    if (parsed.is_packed()) why = "; packed layouts are chosen by the compiler";
    if (parsed.letters().size() == letters.size() && parsed.same_axes(Layout::parse(letters)) && why.empty())
      return axes_of(layout, letters);
  } catch (const UserError& error) {
    why = ": " + error.message();
  }
  input.fail(fmt::format("{} must be an order of the letters {}, got '{}'{}", name, letters, layout, why));
}

}  // namespace headrace::ops
