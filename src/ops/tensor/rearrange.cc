#include "ops/tensor/rearrange.h"

#include "arith/canonical.h"
#include "ir/layout.h"
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/index_value.h"
#include "ops/loops/letter_view.h"
#include "ops/loops/move.h"
#include "ops/loops/permute.h"
#include "ops/loops/window.h"
#include "ops/tensor/elementwise.h"

namespace headrace::ops {

void LayoutTransformAttrs::fields(FieldList<LayoutTransformAttrs>& f) {
  f.field<&LayoutTransformAttrs::src_layout>("src_layout", {.doc = "the layout of data: NCHW, NCHW16c, ..."})
      .field<&LayoutTransformAttrs::dst_layout>("dst_layout", {.doc = "the layout of the result"});
}

void SlidingWindowAttrs::fields(FieldList<SlidingWindowAttrs>& f) {
  f.field<&SlidingWindowAttrs::axis>("axis", {.doc = "the first axis that windows slide along"})
      .field<&SlidingWindowAttrs::window_shape>("window_shape",
                                                {.doc = "the window's size along `axis` and the axes after it"})
      .field<&SlidingWindowAttrs::strides>(
          "strides", {.doc = "elements from one window to the next, one number for each of window_shape"});
}

void ReverseSequenceAttrs::fields(FieldList<ReverseSequenceAttrs>& f) {
  f.field<&ReverseSequenceAttrs::seq_axis>("seq_axis",
                                           {.default_value = 1, .has_default = true, .doc = "the axis of the steps"})
      .field<&ReverseSequenceAttrs::batch_axis>(
          "batch_axis", {.default_value = 0, .has_default = true, .doc = "the axis of the sequences"});
}

void MeshgridAttrs::fields(FieldList<MeshgridAttrs>& f) {
  f.field<&MeshgridAttrs::indexing>(
      "indexing", {.default_value = "ij", .has_default = true, .doc = "ij, or xy: the first two axes exchanged"});
}

void SliceLikeAttrs::fields(FieldList<SliceLikeAttrs>& f) {
  f.field<&SliceLikeAttrs::axes>("axes", {.default_value = Shape(), .has_default = true, .doc = "empty: all"});
}

size_t meshgrid_axis(const MeshgridAttrs& attrs, size_t k) { return attrs.indexing == "xy" && k < 2 ? 1 - k : k; }

namespace {

using relay::make_call;

// ---- layout_transform

// Runs what may throw a UserError of its own, and places it at the call.
template <typename F>
auto placed(const RelationInput& input, F&& body) {
  try {
    return body();
  } catch (const UserError& error) {
    input.fail(error.message());
  }
}

Type relate_layout_transform(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  const auto& attrs = input.call.attrs_as<LayoutTransformAttrs>();
  if (!data) return {};
  return placed(input, [&]() -> Type {
    const Layout src = Layout::parse(attrs.src_layout), dst = Layout::parse(attrs.dst_layout);
    return make_tensor_type(convert_shape(data->shape, src, dst), data->dtype);
  });
}

// Where an element of a tensor lies in the memory of one layout: the sum of an offset for its position along each axis.
// The walk over another layout, in the order of its memory, looks these offsets up; each dimension of that layout
// counts steps along one axis.
class LayoutWalk {
 public:
  LayoutWalk(const LetterView& from, const Layout& to, std::string_view letters) {
    for (size_t letter = 0; letter < letters.size(); ++letter) {
      std::vector<int64_t>& offsets = offsets_.emplace_back();
      for (int64_t i = 0; i < from.dims[letter]; ++i) offsets.push_back(from.at(letter, i));
    }
    dims_.resize(to.rank());
    for (size_t letter = 0; letter < letters.size(); ++letter) {
      int64_t inner = 1;
      const std::vector<size_t> positions = to.positions(letters[letter]);
      for (auto d = positions.rbegin(); d != positions.rend(); ++d) {
        dims_[*d] = {letter, inner};
        inner *= std::max<int64_t>(to.items()[*d].factor, 1);
      }
    }
  }

  // Returns how far apart the elements along each dimension of the walk lie, where no axis of `from` is in parts.
  Shape strides() const {
    Shape result;
    for (const Dim& dim : dims_) {
      const std::vector<int64_t>& offsets = offsets_[dim.letter];
      const auto step = static_cast<size_t>(dim.step);
      result.push_back(step < offsets.size() ? offsets[step] : 0);
    }
    return result;
  }

  // Calls visit(offset, offsets, step) for each row of the last dimension of `shape`: element k of the row lies at
  // offset + offsets[k * step].
  template <typename F>
  void for_each_row(const Shape& shape, F&& visit) const {
    const Dim last = dims_.back();
    std::vector<int64_t> place(offsets_.size());
    for_each_index(Shape(shape.begin(), shape.end() - 1), [&](const Shape& index) {
      std::fill(place.begin(), place.end(), 0);
      for (size_t d = 0; d < index.size(); ++d) place[dims_[d].letter] += index[d] * dims_[d].step;
      int64_t offset = 0;
      for (size_t letter = 0; letter < place.size(); ++letter) {
        if (letter != last.letter) offset += offsets_[letter][static_cast<size_t>(place[letter])];
      }
      visit(offset, offsets_[last.letter].data() + place[last.letter], last.step);
    });
  }

 private:
  struct Dim {
    size_t letter = 0;
    int64_t step = 1;
  };
  std::vector<std::vector<int64_t>> offsets_;  // by letter and position
  std::vector<Dim> dims_;
};

// Moves elements that are as large as T.
template <typename T>
void move_rows(const LayoutWalk& walk, const NDArray& from, const NDArray& to) {
  const char* data = from.data<char>();
  char* out = to.data<char>();
  const int64_t width = to.shape().back();
  walk.for_each_row(to.shape(), [&](int64_t offset, const int64_t* offsets, int64_t step) {
    for (int64_t k = 0; k < width; ++k, out += sizeof(T))
      std::memcpy(out, data + (offset + offsets[k * step]) * static_cast<int64_t>(sizeof(T)), sizeof(T));
  });
}

std::vector<NDArray> eval_layout_transform(const EvalInput& input) {
  const auto& attrs = input.attrs<LayoutTransformAttrs>();
  const Layout src = Layout::parse(attrs.src_layout), dst = Layout::parse(attrs.dst_layout);
  const NDArray out = input.make_output();
  if (out.num_elements() == 0) return {out};
  const std::string letters = src.letters();
  const LayoutWalk walk(LetterView(input.args[0].shape(), src, letters), dst, letters);
  if (!src.is_packed()) {
    permute(input, input.args[0], walk.strides(), out);
    return {out};
  }
  switch (out.dtype().bytes()) {
    case 1:
      move_rows<uint8_t>(walk, input.args[0], out);
      break;
    case 2:
      move_rows<uint16_t>(walk, input.args[0], out);
      break;
    case 4:
      move_rows<uint32_t>(walk, input.args[0], out);
      break;
    case 8:
      move_rows<uint64_t>(walk, input.args[0], out);
      break;
    default:
      HEADRACE_CHECK(false, "elements of {} bytes", out.dtype().bytes());
  }
  return {out};
}

// ---- sliding_window

Type relate_sliding_window(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  const auto& attrs = input.call.attrs_as<SlidingWindowAttrs>();
  if (!data) return {};
  const size_t rank = data->shape.size(), axis = normal_axis(input, attrs.axis, rank);
  check_sizes(input, "window_shape", attrs.window_shape, rank - axis, 1);
  const Window window = make_window(input, rank - axis, attrs.strides, Shape{0}, Shape(rank - axis, 1));
  Array<PrimExpr> dims(data->shape.begin(), data->shape.begin() + static_cast<std::ptrdiff_t>(axis));
  for (size_t i = axis; i < rank; ++i)
    dims.push_back(window_count(input, window, i - axis, data->shape[i], attrs.window_shape[i - axis]));
  for (const int64_t size : attrs.window_shape) dims.push_back(make_int(size));
  return make_tensor_type(dims, data->dtype);
}

std::vector<NDArray> eval_sliding_window(const EvalInput& input) {
  const auto& attrs = input.attrs<SlidingWindowAttrs>();
  const NDArray out = input.make_output();
  const size_t rank = input.args[0].shape().size(), axis = normal_axis(attrs.axis, rank);
  const Shape strides = dense_strides(input.args[0].shape());
  move_elements(input.args[0], out, [&](const Shape& index) {
    int64_t at = 0;
    for (size_t i = 0; i < rank; ++i)
      at += strides[i] * (i < axis ? index[i] : index[i] * attrs.strides[i - axis] + index[i + rank - axis]);
    return at;
  });
  return {out};
}

// ---- reverse_sequence

Type relate_reverse_sequence(const RelationInput& input) {
  const TensorType data = input.tensor(0), lengths = input.tensor(1);
  const auto& attrs = input.call.attrs_as<ReverseSequenceAttrs>();
  if (!data || !lengths) return {};
  const size_t steps = normal_axis(input, attrs.seq_axis, data->shape.size(), "seq_axis"),
               batch = normal_axis(input, attrs.batch_axis, data->shape.size(), "batch_axis");
  if (steps == batch) input.fail(fmt::format("seq_axis and batch_axis are both {}", steps));
  if (!is_integer(lengths) || lengths->shape.size() != 1 || arith::is_unequal(lengths->shape[0], data->shape[batch]))
    input.fail(fmt::format("seq_lengths must be {} integers, one a sequence of {}, got {}",
                           to_string(data->shape[batch]), show(data), show(lengths)));
  return data;
}

std::vector<NDArray> eval_reverse_sequence(const EvalInput& input) {
  const auto& attrs = input.attrs<ReverseSequenceAttrs>();
  const NDArray out = input.make_output();
  const Shape strides = dense_strides(out.shape());
  const size_t steps = normal_axis(attrs.seq_axis, strides.size()),
               batch = normal_axis(attrs.batch_axis, strides.size());
  move_elements(input.args[0], out, [&](const Shape& index) {
    const int64_t length = std::min(index_at(input.args[1], index[batch]), out.shape()[steps]);
    const int64_t from = index[steps] < length ? length - 1 - index[steps] : index[steps];
    return dot(index, strides) + (from - index[steps]) * strides[steps];
  });
  return {out};
}

// ---- meshgrid

Type relate_meshgrid(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<MeshgridAttrs>();
  if (attrs.indexing != "ij" && attrs.indexing != "xy")
    input.fail(fmt::format("indexing is '{}', expected ij or xy", attrs.indexing));
  const std::vector<TensorType> items = input.tensors(0);
  if (items.empty()) input.fail("needs at least one tensor");
  std::vector<PrimExpr> dims(items.size());
  for (size_t k = 0; k < items.size(); ++k) {
    if (!items[k]) return {};
    check_same_dtype(input, items[0], items[k], fmt::format("item {}", k));
    if (items[k]->shape.size() > 1)
      input.fail(fmt::format("item {} must have one dimension, got {}", k, show(items[k])));
    const size_t axis = items.size() < 2 ? k : meshgrid_axis(attrs, k);
    dims[axis] = items[k]->shape.empty() ? make_int(1) : items[k]->shape[0];
  }
  return make_tuple_type(
      Array<Type>(std::vector<Type>(items.size(), make_tensor_type(Array<PrimExpr>(dims), items[0]->dtype))));
}

std::vector<NDArray> eval_meshgrid(const EvalInput& input) {
  std::vector<NDArray> outs;
  for (size_t k = 0; k < input.args.size(); ++k) {
    outs.push_back(input.make_output(k));
    const size_t axis = input.args.size() < 2 ? k : meshgrid_axis(input.attrs<MeshgridAttrs>(), k);
    move_elements(input.args[k], outs[k], [&](const Shape& index) { return index[axis]; });
  }
  return outs;
}

// ---- adv_index

Type relate_adv_index(const RelationInput& input) {
  const std::vector<TensorType> items = input.tensors(0);
  if (items.size() < 2) input.fail("needs data and at least one tensor of indices");
  for (const TensorType& item : items) {
    if (!item) return {};
  }
  const size_t count = items.size() - 1;
  if (count > items[0]->shape.size()) input.fail(fmt::format("{} tensors of indices for {}", count, show(items[0])));
  TensorType common = items[1];
  for (size_t k = 1; k < items.size(); ++k) {
    if (!is_integer(items[k])) input.fail(fmt::format("indices must be integers, got {}", show(items[k])));
    common = make_tensor_type(broadcast_shapes(input, common, items[k]), common->dtype);
  }
  Array<PrimExpr> dims = common->shape;
  for (size_t i = count; i < items[0]->shape.size(); ++i) dims.push_back(items[0]->shape[i]);
  return make_tensor_type(dims, items[0]->dtype);
}

std::vector<NDArray> eval_adv_index(const EvalInput& input) {
  const NDArray out = input.make_output();
  const size_t count = input.args.size() - 1;
  const Shape& shape = input.args[0].shape();
  const Shape strides = dense_strides(shape);
  const size_t common = out.shape().size() - (shape.size() - count);
  const Shape picks(out.shape().begin(), out.shape().begin() + static_cast<std::ptrdiff_t>(common));
  std::vector<Shape> pick_strides;
  for (size_t k = 0; k < count; ++k) {
    pick_strides.push_back(broadcast_strides(input.args[k + 1].shape(), picks));
    for (int64_t i = 0; i < input.args[k + 1].num_elements(); ++i)
      checked_index_at(input, input.args[k + 1], i, shape[k], true);
  }
  move_elements(input.args[0], out, [&](const Shape& index) {
    int64_t at = 0;
    for (size_t k = 0; k < count; ++k) {
      int64_t pick = 0;
      for (size_t i = 0; i < common; ++i) pick += index[i] * pick_strides[k][i];
      at += checked_index_at(input, input.args[k + 1], pick, shape[k], true) * strides[k];
    }
    for (size_t i = count; i < shape.size(); ++i) at += index[common + i - count] * strides[i];
    return at;
  });
  return {out};
}

// ---- unravel_index

constexpr int64_t kMostAxes = 64;

Type relate_unravel_index(const RelationInput& input) {
  const TensorType indices = input.tensor(0), shape = input.tensor(1);
  if (!indices || !shape) return {};
  if (!is_integer(indices)) input.fail(fmt::format("indices must be integers, got {}", show(indices)));
  if (!is_integer(shape) || shape->shape.size() != 1)
    input.fail(fmt::format("shape must be integers of one dimension, got {}", show(shape)));
  const auto rank = as_int(shape->shape[0]);
  if (rank && *rank > kMostAxes) input.fail(fmt::format("shape has {} axes, more than {}", *rank, kMostAxes));
  Array<PrimExpr> dims{shape->shape[0]};
  for (const PrimExpr& dim : indices->shape) dims.push_back(dim);
  return make_tensor_type(dims, indices->dtype);
}

std::vector<NDArray> eval_unravel_index(const EvalInput& input) {
  const NDArray out = input.make_output();
  const std::vector<int64_t> shape = to_ints(input.args[1]);
  const int64_t count = input.args[0].num_elements();
  int64_t size = 1;
  for (const int64_t dim : shape) size *= dim;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = index_at(input.args[0], i);
    if (rest < 0 || rest >= size)
      throw_at(
          input.call.span, "unravel_index",
          fmt::format("index {} is out of range for shape ({})", index_text(input.args[0], i), fmt::join(shape, ", ")));
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d])
      set_element_int(out.tensor(), static_cast<int64_t>(d) * count + i, rest % shape[d]);
  }
  return {out};
}

// ---- slice_like

Type relate_slice_like(const RelationInput& input) {
  const TensorType data = input.tensor(0), like = input.tensor(1);
  if (!data || !like) return {};
  const Shape& axes = input.call.attrs_as<SliceLikeAttrs>().axes;
  Array<PrimExpr> dims = data->shape;
  const size_t rank = data->shape.size();
  if (axes.empty() && like->shape.size() > rank)
    input.fail(fmt::format("shape_like has more dimensions than data: {} and {}", show(like), show(data)));
  const size_t count = axes.empty() ? like->shape.size() : axes.size();
  for (size_t k = 0; k < count; ++k) {
    const size_t axis = axes.empty() ? k : normal_axis(input, axes[k], rank);
    if (axis >= like->shape.size()) input.fail(fmt::format("shape_like {} has no axis {}", show(like), axis));
    const auto n = as_int(dims[axis]), wanted = as_int(like->shape[axis]);
    if (n && wanted && *wanted > *n)
      input.fail(fmt::format("axis {} of shape_like {} is longer than of {}", axis, show(like), show(data)));
    dims.set(axis, like->shape[axis]);
  }
  return make_tensor_type(dims, data->dtype);
}

std::vector<NDArray> eval_slice_like(const EvalInput& input) {
  const NDArray out = input.make_output();
  const Shape strides = dense_strides(input.args[0].shape());
  move_elements(input.args[0], out, [&](const Shape& index) { return dot(index, strides); });
  return {out};
}

// ---- reinterpret

Type relate_reinterpret(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  const DataType dtype = input.call.attrs_as<CastAttrs>().dtype;
  if (!data) return {};
  if (!dtype.is_scalar() || dtype.is_handle() || dtype.is_bool() || data->dtype.is_bool() ||
      dtype.bits() != data->dtype.bits())
    input.fail(fmt::format("the bits of {} cannot be read as {}", show(data), dtype));
  return make_tensor_type(data->shape, dtype);
}

std::vector<NDArray> eval_reinterpret(const EvalInput& input) {
  const NDArray out = input.make_output();
  std::memcpy(out.data<char>(), input.args[0].data<char>(), out.size_bytes());
  return {out};
}

void register_indexing() {
  OpBuilder("adv_index",
            "data at index tensors of its first axes, which broadcast: a tuple (data T[n0, n1, ...], int[Y...], ...) "
            "-> T[Y..., rest of data]. A negative index counts from the end. NumPy's advanced indexing.")
      .arg(
          "inputs", "Tuple of tensors",
          "T[n0, n1, ...], then int[Y...], ..., which broadcast: the tensor to read, and the indices of its first axes")
      .relation(relate_adv_index)
      .fusion(FusionKind::injective)
      .level(3)
      .eval(eval_adv_index);
  OpBuilder("unravel_index",
            "Positions in a flattened tensor as indices of `shape`: indices int[Y...], shape int[rank] -> int[rank, "
            "Y...].")
      .arg("indices", "Tensor", "int[Y...]: positions, counted in row-major order")
      .arg("shape", "Tensor", "int[rank]: the shape that they are positions of")
      .relation(relate_unravel_index)
      .fusion(FusionKind::injective)
      .level(3)
      .eval(eval_unravel_index);
  OpBuilder("meshgrid", "Coordinates of a grid: a tuple of k tensors [n_i] -> k tensors [n_0, .., n_k].")
      .arg("data", "Tuple of tensors", "T[n0], T[n1], ..., or T[]: the coordinates along each axis")
      .attrs<MeshgridAttrs>()
      .relation(relate_meshgrid)
      .fusion(FusionKind::opaque)
      .level(3)
      .eval(eval_meshgrid);
}

}  // namespace

void register_rearrange_ops() {
  register_indexing();
  moving(OpBuilder("layout_transform", "data in another layout: T[N,C,H,W] -> T[N,C/16,H,W,16] for NCHW16c.")
             .arg("data", "Tensor", "T[in src_layout]: the tensor to rearrange")
             .attrs<LayoutTransformAttrs>()
             .level(5),
         relate_layout_transform, eval_layout_transform);
  moving(OpBuilder("sliding_window",
                   "The windows of the last axes: data T[batch.., n..] -> T[batch.., windows.., window_shape..].")
             .arg("data", "Tensor", "T[...]: the tensor that windows are cut from")
             .attrs<SlidingWindowAttrs>(),
         relate_sliding_window, eval_sliding_window);
  moving(OpBuilder("reverse_sequence",
                   "The first seq_lengths[b] steps of sequence b in the opposite order: data T[...], seq_lengths "
                   "int[batch] -> data's type. A length below 0 or past the axis is an error.")
             .arg("data", "Tensor", "T[...]: the sequences")
             .arg("seq_lengths", "Tensor", "int[batch]: how many steps of each are reversed")
             .attrs<ReverseSequenceAttrs>()
             .level(3),
         relate_reverse_sequence, eval_reverse_sequence);
  moving(OpBuilder("slice_like",
                   "The first elements along axes, as many as shape_like has: data T[...], shape_like [...] -> T[...].")
             .arg("data", "Tensor", "T[...]: the tensor to cut")
             .arg("shape_like", "Tensor", "[...]: only its shape counts")
             .attrs<SliceLikeAttrs>()
             .level(2),
         relate_slice_like, eval_slice_like);
  OpBuilder("reinterpret", "The same bits read as another dtype of the same size: x[...] -> dtype[...].")
      .arg("data", "Tensor", "T[...], numbers: the tensor to read as another dtype")
      .attrs<CastAttrs>()
      .relation(relate_reinterpret)
      .fusion(FusionKind::elementwise)
      .level(3)
      .eval(eval_reinterpret);
}

Expr layout_transform(Expr data, std::string src_layout, std::string dst_layout, Span span) {
  return call_with<LayoutTransformAttrs>("layout_transform", {std::move(data)}, std::move(span), [&](auto& a) {
    a.src_layout = std::move(src_layout);
    a.dst_layout = std::move(dst_layout);
  });
}

Expr reverse_sequence(Expr data, Expr seq_lengths, int64_t seq_axis, int64_t batch_axis, Span span) {
  return call_with<ReverseSequenceAttrs>("reverse_sequence", {std::move(data), std::move(seq_lengths)}, std::move(span),
                                         [&](auto& a) { a.seq_axis = seq_axis, a.batch_axis = batch_axis; });
}

}  // namespace headrace::ops
