// Rules of ops on boxes and regions.
#include "ops/image/vision.h"

#include "lower/rules/rule.h"
#include "lower/rules/sort_loops.h"

namespace headrace::lower {

namespace {

using tir::make_if;
using tir::make_seq;
using tir::Stmt;

Stmt filled(const Line& line, const PrimExpr& value) {
  return each(line.size(), [&](const PrimExpr& i) { return line.set_item(i, value); });
}

// ---- get_valid_counts

Stmt get_valid_counts_rule(const KernelInput& input) {
  const auto& attrs = input.attrs<ops::GetValidCountsAttrs>();
  const Line &data = input.inputs[0], &counts = input.outputs[0], &out = input.outputs[1], &indices = input.outputs[2];
  const int64_t boxes = data.shape[1], size = data.shape[2];
  const DataType dtype = wide_type(data.buffer->dtype);
  const auto batch = [&](const PrimExpr& b, const Cell& count) {
    const Stmt scan = each(boxes, [&](const PrimExpr& j) {
      const PrimExpr from = (b * boxes + j) * size;
      const auto element = [&](int64_t k) { return wide(data.item(from + k)); };
      const PrimExpr threshold = input.inputs.size() > 1 ? make_cast(dtype, input.inputs[1].item(make_int(0)))
                                                         : make_float(attrs.score_threshold, dtype);
      PrimExpr is_valid = make_binary(BinaryOp::gt, element(attrs.score_index), threshold);
      if (attrs.id_index >= 0)
        is_valid = both(is_valid, make_binary(BinaryOp::ge, element(attrs.id_index), make_float(0, dtype)));
      return make_if(is_valid, bind(count.get(), [&](const PrimExpr& at) {
                       const Stmt copy = each(size, [&](const PrimExpr& k) {
                         return out.set_item((b * boxes + at) * size + k, data.item(from + k));
                       });
                       return make_seq({copy, indices.set_item(b * boxes + at, j), count.set(at + 1)});
                     }));
    });
    return make_seq({count.set(make_int(0)), scan, counts.set_item(b, count.get())});
  };
  return make_seq({filled(out, make_float(-1, out.buffer->dtype)), filled(indices, make_int(-1)),
                   each(data.shape[0], [&](const PrimExpr& b) {
                     return with_cell(kIndexType, [&](const Cell& count) { return batch(b, count); });
                   })});
}

// ---- non_max_suppression

// The boxes of one batch, which begin at `first`. The first `count` of them are considered.
struct Batch {
  const KernelInput& input;
  const ops::NonMaximumSuppressionAttrs& attrs;
  PrimExpr number;
  int64_t boxes, size;

  const Line& data() const { return input.inputs[0]; }
  PrimExpr element(const PrimExpr& box, int64_t k) const {
    return wide(data().item((number * boxes + box) * size + k));
  }
  PrimExpr score(const PrimExpr& box) const { return element(box, attrs.score_index); }
  // Return the lower and the higher edge of a box along axis 0 or 1.
  PrimExpr low(const PrimExpr& box, int64_t axis) const {
    return least(element(box, attrs.coord_start + axis), element(box, attrs.coord_start + axis + 2));
  }
  PrimExpr high(const PrimExpr& box, int64_t axis) const {
    return most(element(box, attrs.coord_start + axis), element(box, attrs.coord_start + axis + 2));
  }
  PrimExpr area(const PrimExpr& box) const { return (high(box, 0) - low(box, 0)) * (high(box, 1) - low(box, 1)); }
  PrimExpr overlap(const PrimExpr& a, const PrimExpr& b) const {
    const PrimExpr zero = number_like(0, score(a));
    const auto shared = [&](int64_t axis) {
      return most(zero, least(high(a, axis), high(b, axis)) - most(low(a, axis), low(b, axis)));
    };
    const PrimExpr inner = shared(0) * shared(1), outer = area(a) + area(b) - inner;
    return make_select(make_binary(BinaryOp::le, outer, zero), zero, divide(inner, outer));
  }
  PrimExpr suppresses(const PrimExpr& a, const PrimExpr& b) const {
    const PrimExpr threshold = make_cast(score(a)->dtype, input.inputs[4].item(make_int(0)));
    const PrimExpr overlaps = make_binary(BinaryOp::ge, overlap(a, b), threshold);
    if (attrs.force_suppress || attrs.id_index < 0) return overlaps;
    return both(make_binary(BinaryOp::eq, element(a, attrs.id_index), element(b, attrs.id_index)), overlaps);
  }
};

// Writes for each of the first `looked` boxes of `order` whether it is kept.
Stmt suppress(const Batch& batch, const Line& order, const Line& is_kept, const PrimExpr& looked, const Cell& total) {
  const PrimExpr limit = as_index(batch.input.inputs[3].item(make_int(0)));
  const Stmt loop = each(looked, [&](const PrimExpr& i) {
    return with_cell(kIndexType, [&](const Cell& keeps) {
      const PrimExpr has_room = make_binary(BinaryOp::logical_or, make_binary(BinaryOp::le, limit, make_int(0)),
                                            make_binary(BinaryOp::lt, total.get(), limit));
      const Stmt look = each(i, [&](const PrimExpr& j) {
        const PrimExpr asks = both(make_binary(BinaryOp::eq, keeps.get(), make_int(1)),
                                   make_binary(BinaryOp::eq, is_kept.item(j), make_int(1)));
        return make_if(asks, bind(order.item(j), [&](const PrimExpr& a) {
                         return bind(order.item(i), [&](const PrimExpr& b) {
                           return make_if(batch.suppresses(a, b), keeps.set(make_int(0)));
                         });
                       }));
      });
      return make_seq({keeps.set(make_cast(kIndexType, has_room)), look, is_kept.set_item(i, keeps.get()),
                       total.set(total.get() + keeps.get())});
    });
  });
  return make_seq({total.set(make_int(0)), loop});
}

// Writes box i of the order to the results, after the `next` rows that are already written.
Stmt write_box(const Batch& batch, const Line& order, const PrimExpr& is_kept, const PrimExpr& i, const Cell& next) {
  const Line& out = batch.input.outputs[0];
  return bind(order.item(i), [&](const PrimExpr& box) {
    const PrimExpr from = batch.number * batch.boxes + box, to = batch.number * batch.boxes + next.get();
    const Stmt step = next.set(next.get() + 1);
    if (batch.attrs.return_indices)
      return make_if(is_kept, make_seq({out.set_item(to, batch.input.inputs[2].item(from)), step}));
    const Stmt copy = each(batch.size, [&](const PrimExpr& k) {
      return out.set_item(to * batch.size + k, batch.data().item(from * batch.size + k));
    });
    return batch.attrs.invalid_to_bottom ? make_if(is_kept, make_seq({copy, step}))
                                         : make_seq({make_if(is_kept, copy), step});
  });
}

Stmt suppress_batch(const Batch& batch, const PrimExpr& count) {
  // Treats a NaN score as the lowest.
  const auto ranked = [&](const PrimExpr& box) {
    const PrimExpr score = batch.score(box);
    return make_select(make_intrinsic(Intrinsic::isnan, DataType::bool_(), {score}),
                       tir::identity_of(Combiner::max, score->dtype), score);
  };
  const auto is_before = [&](const PrimExpr& i, const PrimExpr& j) {
    return make_binary(BinaryOp::gt, ranked(i), ranked(j));
  };
  return with_order(batch.boxes, count, is_before, [&](const Line& order) {
    const PrimExpr looked = batch.attrs.top_k > 0 ? least(count, make_int(batch.attrs.top_k)) : count;
    return with_scratch("kept", kIndexType, {batch.boxes}, [&](const Line& is_kept) {
      return with_cell(kIndexType, [&](const Cell& cell) {
        std::vector<Stmt> stmts{suppress(batch, order, is_kept, looked, cell), cell.set(make_int(0))};
        stmts.push_back(each(looked, [&](const PrimExpr& i) {
          return write_box(batch, order, make_binary(BinaryOp::eq, is_kept.item(i), make_int(1)), i, cell);
        }));
        if (batch.attrs.return_indices) stmts.push_back(batch.input.outputs[1].set_item(batch.number, cell.get()));
        return make_seq(stmts);
      });
    });
  });
}

Stmt non_max_suppression_rule(const KernelInput& input) {
  const auto& attrs = input.attrs<ops::NonMaximumSuppressionAttrs>();
  const Line &data = input.inputs[0], &out = input.outputs[0];
  const int64_t boxes = data.shape[1];
  return make_seq({filled(out, make_const(-1, out.buffer->dtype)), each(data.shape[0], [&](const PrimExpr& b) {
                     const PrimExpr given = as_index(input.inputs[1].item(b));
                     return bind(clamp(given, make_int(0), make_int(boxes)), [&](const PrimExpr& count) {
                       return suppress_batch({input, attrs, b, boxes, data.shape[2]}, count);
                     });
                   })});
}

// ---- roi_align

// One channel of the image that a region belongs to.
struct Plane {
  const Line& data;
  ops::Planes planes;
  PrimExpr batch, channel;

  PrimExpr at(const PrimExpr& row, const PrimExpr& column) const {
    return wide(data.item(planes.offset(batch, channel, row * planes.width + column)));
  }
};

// Interpolates between four elements of the plane at (y, x), clamped to the plane. The caller checks that the position
// is not far outside.
PrimExpr sample(const Plane& plane, const PrimExpr& y, const PrimExpr& x) {
  const int64_t height = plane.planes.height, width = plane.planes.width;
  const DataType dtype = y->dtype;
  const auto place = [&](const PrimExpr& at, int64_t size) {
    return clamp(at, make_float(0, dtype), make_float(static_cast<double>(size - 1), dtype));
  };
  const PrimExpr row = place(y, height), column = place(x, width), one = make_float(1, dtype);
  const PrimExpr top = make_cast(kIndexType, row), left = make_cast(kIndexType, column);
  const PrimExpr bottom = least(top + 1, make_int(height - 1)), right = least(left + 1, make_int(width - 1));
  const PrimExpr v = row - make_cast(dtype, top), u = column - make_cast(dtype, left);
  return plane.at(top, left) * ((one - v) * (one - u)) + plane.at(top, right) * ((one - v) * u) +
         plane.at(bottom, left) * (v * (one - u)) + plane.at(bottom, right) * (v * u);
}

// A region along one axis: its begin, the length of a bin and the number of samples in a bin.
struct Span1D {
  PrimExpr begin, bin, samples;
};

Stmt with_span(const KernelInput& input, const PrimExpr& low, const PrimExpr& high, int64_t bins,
               const std::function<Stmt(const Span1D&)>& body) {
  const auto& attrs = input.attrs<ops::ROIAlignAttrs>();
  const PrimExpr scale = number_like(attrs.spatial_scale, low), shift = number_like(attrs.aligned ? 0.5 : 0, low);
  return bind(low * scale - shift, [&](const PrimExpr& begin) {
    const PrimExpr size = high * scale - shift - begin, length = attrs.aligned ? size : most(size, number_like(1, low));
    return bind(
        make_binary(BinaryOp::div, length, number_like(static_cast<double>(bins), low)), [&](const PrimExpr& bin) {
          const PrimExpr wanted = attrs.sample_ratio > 0
                                      ? make_int(attrs.sample_ratio)
                                      : make_cast(kIndexType, make_intrinsic(Intrinsic::ceil, bin->dtype, {bin}));
          return bind(attrs.aligned ? most(wanted, make_int(0)) : wanted, [&](const PrimExpr& samples) {
            const PrimExpr fewest = make_int(attrs.aligned ? 0 : 1);
            return make_seq(
                {tir::make_assert(is_within(samples, fewest, make_int(ops::kMostSamples + 1)),
                                  fmt::format("vision.roi_align: a region needs more than {} samples along a side of "
                                              "one result, or none; check its coordinates, or give a sample_ratio",
                                              ops::kMostSamples)),
                 body({begin, bin, samples})});
          });
        });
  });
}

PrimExpr sample_place(const Span1D& span, const PrimExpr& bin, const PrimExpr& sample) {
  const DataType dtype = span.bin->dtype;
  const PrimExpr part = divide(make_cast(dtype, sample) + make_float(0.5, dtype), make_cast(dtype, span.samples));
  return span.begin + (make_cast(dtype, bin) + part) * span.bin;
}

// Combines the samples of bin (p, q) in a plane to one result.
Stmt pool_bin(const KernelInput& input, const Plane& plane, const Index& bin, const Span1D& rows, const Span1D& columns,
              const PrimExpr& place) {
  const bool takes_max = input.attrs<ops::ROIAlignAttrs>().mode == "max";
  const DataType dtype = wide_type(plane.data.buffer->dtype);
  const auto inside = [&](const PrimExpr& at, int64_t size) {
    return both(make_binary(BinaryOp::ge, at, make_float(-1, dtype)),
                make_binary(BinaryOp::le, at, make_float(static_cast<double>(size), dtype)));
  };
  return with_cell(dtype, [&](const Cell& total) {
    const Stmt loops = each(rows.samples, [&](const PrimExpr& i) {
      return each(columns.samples, [&](const PrimExpr& j) {
        return bind(sample_place(rows, bin[0], i), [&](const PrimExpr& y) {
          return bind(sample_place(columns, bin[1], j), [&](const PrimExpr& x) {
            const PrimExpr value = guarded(both(inside(y, plane.planes.height), inside(x, plane.planes.width)),
                                           sample(plane, y, x), make_float(0, dtype));
            return total.set(takes_max ? most(total.get(), value) : total.get() + value);
          });
        });
      });
    });
    const PrimExpr samples = rows.samples * columns.samples, zero = make_float(0, dtype);
    const PrimExpr count = make_cast(dtype, most(samples, make_int(1)));
    const PrimExpr first = takes_max ? make_select(make_binary(BinaryOp::eq, samples, make_int(0)), zero,
                                                   tir::identity_of(Combiner::max, dtype))
                                     : zero;
    return make_seq({total.set(first), loops,
                     input.outputs[0].set_item(place, takes_max ? total.get() : divide(total.get(), count))});
  });
}

Stmt roi_align_rule(const KernelInput& input) {
  const Line &data = input.inputs[0], &rois = input.inputs[1], &out = input.outputs[0];
  const std::string& layout = input.attrs<ops::ROIAlignAttrs>().layout;
  const ops::Planes from(data.shape, layout), to(out.shape, layout);
  const auto region = [&](const PrimExpr& r, const PrimExpr& batch) {
    const auto side = [&](int64_t k) { return wide(rois.item(r * 5 + k)); };
    return with_span(input, side(2), side(4), to.height, [&](const Span1D& rows) {
      return with_span(input, side(1), side(3), to.width, [&](const Span1D& columns) {
        return each_index({to.channels, to.height, to.width}, [&](const Index& i) {
          const PrimExpr place = to.offset(r, i[0], i[1] * to.width + i[2]);
          return pool_bin(input, {data, from, batch, i[0]}, {i[1], i[2]}, rows, columns, place);
        });
      });
    });
  };
  return each_parallel(input, out.shape[0], out.size() * 16, [&](const PrimExpr& r) {
    return bind(make_cast(kIndexType, wide(rois.item(r * 5))), [&](const PrimExpr& batch) {
      return make_seq(
          {tir::make_assert(
               is_within(batch, make_int(0), make_int(data.shape[0])),
               "vision.roi_align: a region is of an image that data does not have; check its first element"),
           region(r, batch)});
    });
  });
}

}  // namespace

void register_vision_rules() {
  set_kernel_rule("vision.get_valid_counts", get_valid_counts_rule);
  set_kernel_rule("vision.non_max_suppression", non_max_suppression_rule);
  set_kernel_rule("vision.roi_align", roi_align_rule);
}

}  // namespace headrace::lower
