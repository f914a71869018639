// Rules of ops that turn the feature maps of detectors into boxes and regions.
#include "ops/image/detection.h"

#include "lower/rules/rule.h"

namespace headrace::lower {

namespace {

using tir::make_if;
using tir::make_seq;
using tir::Stmt;

PrimExpr real_item(const Line& line, const PrimExpr& position) { return make_cast(kReal, line.item(position)); }
PrimExpr cut(bool clips, const PrimExpr& x) { return clips ? clamp(x, real(0), real(1)) : x; }

Stmt multibox_prior_rule(const KernelInput& input) {
  const auto& attrs = input.attrs<ops::MultiBoxPriorAttrs>();
  const Line& out = input.outputs[0];
  if (out.size() == 0) return make_seq({});
  const int64_t height = input.inputs[0].shape[2], width = input.inputs[0].shape[3];
  const std::vector<ops::PriorBox> boxes = ops::prior_boxes(attrs, height, width);
  const auto place = [&](size_t axis, const PrimExpr& i, int64_t size) {
    return (make_cast(kReal, i) + real(attrs.offsets[axis])) * real(ops::prior_step(attrs, axis, size));
  };
  return each_parallel(input, height, out.size(), [&](const PrimExpr& i) {
    return each(width, [&](const PrimExpr& j) {
      std::vector<Stmt> stmts;
      PrimExpr next = (i * width + j) * (static_cast<int64_t>(boxes.size()) * 4);
      const auto add = [&](const PrimExpr& edge) {
        stmts.push_back(out.set_item(next, cut(attrs.clip, edge)));
        next = next + 1;
      };
      const PrimExpr y = place(0, i, height), x = place(1, j, width);
      for (const ops::PriorBox& box : boxes) {
        add(x - real(box.half_width));
        add(y - real(box.half_height));
        add(x + real(box.half_width));
        add(y + real(box.half_height));
      }
      return make_seq(stmts);
    });
  });
}

// ---- multibox_transform_loc

// Writes box j of batch b, with class `id`, to row `to` of the result.
Stmt write_box(const KernelInput& input, const PrimExpr& b, const PrimExpr& j, const PrimExpr& id,
               const PrimExpr& score, const PrimExpr& to) {
  const auto& attrs = input.attrs<ops::MultiBoxTransformLocAttrs>();
  const Line &places = input.inputs[1], &anchors = input.inputs[2], &out = input.outputs[0];
  const int64_t boxes = input.inputs[0].shape[2];
  std::vector<Stmt> stmts{out.set_item(to * 6, make_cast(kReal, id - (attrs.keep_background ? 0 : 1))),
                          out.set_item(to * 6 + 1, score)};
  for (int64_t axis = 0; axis < 2; ++axis) {
    const auto a = static_cast<size_t>(axis);
    const PrimExpr low = real_item(anchors, j * 4 + axis), high = real_item(anchors, j * 4 + axis + 2);
    const auto place = [&](int64_t k) { return real_item(places, (b * boxes + j) * 4 + k); };
    const PrimExpr two = real(2);
    const PrimExpr middle = place(axis) * real(attrs.variances[a]) * (high - low) + divide(low + high, two);
    const PrimExpr grown = make_intrinsic(Intrinsic::exp, kReal, {place(axis + 2) * real(attrs.variances[a + 2])});
    const PrimExpr half = divide(grown * (high - low), two);
    stmts.push_back(out.set_item(to * 6 + 2 + axis, cut(attrs.clip, middle - half)));
    stmts.push_back(out.set_item(to * 6 + 4 + axis, cut(attrs.clip, middle + half)));
  }
  return make_seq(stmts);
}

// Finds the best class of box j of batch b. If there is one, appends the box to the `count` boxes before it.
Stmt transform_box(const KernelInput& input, const PrimExpr& b, const PrimExpr& j, const Cell& id, const Cell& score,
                   const Cell& count) {
  const auto& attrs = input.attrs<ops::MultiBoxTransformLocAttrs>();
  const Line& scores = input.inputs[0];
  const int64_t classes = scores.shape[1], boxes = scores.shape[2], first = attrs.keep_background ? 0 : 1;
  const Stmt look = each(std::max<int64_t>(classes - first, 0), [&](const PrimExpr& i) {
    const PrimExpr k = i + first;
    return bind(real_item(scores, (b * classes + k) * boxes + j), [&](const PrimExpr& own) {
      return make_if(make_binary(BinaryOp::gt, own, score.get()), make_seq({id.set(k), score.set(own)}));
    });
  });
  const Stmt drop = make_if(make_binary(BinaryOp::lt, score.get(), real(attrs.threshold)), id.set(make_int(0)));
  const Stmt write =
      make_seq({write_box(input, b, j, id.get(), score.get(), b * boxes + count.get()), count.set(count.get() + 1)});
  return make_seq({id.set(make_int(0)), score.set(real(-1)), look, drop,
                   attrs.keep_background ? write : make_if(make_binary(BinaryOp::gt, id.get(), make_int(0)), write)});
}

Stmt multibox_transform_loc_rule(const KernelInput& input) {
  const Line &scores = input.inputs[0], &out = input.outputs[0], &counts = input.outputs[1];
  const Stmt fill =
      each(out.size(), [&](const PrimExpr& i) { return out.set_item(i, make_const(-1, out.buffer->dtype)); });
  const Stmt batches = each(scores.shape[0], [&](const PrimExpr& b) {
    return with_cell(kIndexType, [&](const Cell& count) {
      return with_cell(kIndexType, [&](const Cell& id) {
        return with_cell(kReal, [&](const Cell& score) {
          const Stmt boxes =
              each(scores.shape[2], [&](const PrimExpr& j) { return transform_box(input, b, j, id, score, count); });
          return make_seq({count.set(make_int(0)), boxes, counts.set_item(b, count.get())});
        });
      });
    });
  });
  return make_seq({fill, batches});
}

// ---- roi_pool

// The elements [begin, end) of a bin along an axis.
struct Bin {
  PrimExpr begin, end;
};

// Computes ops::rounded_edge (detection.cc) with the same operations in the same order.
PrimExpr rounded_edge(const PrimExpr& at) {
  const auto call = [](Intrinsic f, const PrimExpr& x) { return make_intrinsic(f, kReal, {x}); };
  const PrimExpr rounded = make_select(make_binary(BinaryOp::lt, at, real(0)), call(Intrinsic::ceil, at - real(0.5)),
                                       call(Intrinsic::floor, at + real(0.5)));
  return make_cast(kIndexType, clamp(rounded, real(-ops::kFarthestEdge), real(ops::kFarthestEdge)));
}

Bin pool_bin(const PrimExpr& low, const PrimExpr& length, const PrimExpr& i, int64_t bins, int64_t size) {
  const auto inside = [&](const PrimExpr& at) { return clamp(at + low, make_int(0), make_int(size)); };
  return {inside(floor_div(i * length, make_int(bins))),
          inside(floor_div((i + 1) * length + (bins - 1), make_int(bins)))};
}

Stmt pool_element(const KernelInput& input, const PrimExpr& plane, const Bin& rows, const Bin& columns,
                  const PrimExpr& place) {
  const Line &data = input.inputs[0], &out = input.outputs[0];
  const DataType dtype = wide_type(data.buffer->dtype);
  const auto extent = [](const Bin& bin) { return most(bin.end - bin.begin, make_int(0)); };
  return with_cell(dtype, [&](const Cell& most) {
    return bind(extent(rows), [&](const PrimExpr& height) {
      return bind(extent(columns), [&](const PrimExpr& width) {
        const Stmt loops = each(height, [&](const PrimExpr& y) {
          return each(width, [&](const PrimExpr& x) {
            const PrimExpr at = plane + (rows.begin + y) * data.shape[3] + columns.begin + x;
            return most.set(make_binary(BinaryOp::max, most.get(), wide(data.item(at))));
          });
        });
        const PrimExpr is_empty = make_binary(BinaryOp::eq, height * width, make_int(0));
        const PrimExpr first = make_select(is_empty, make_const(0, dtype), tir::identity_of(Combiner::max, dtype));
        return make_seq({most.set(first), loops, out.set_item(place, most.get())});
      });
    });
  });
}

// Computes the first element and the length of a region along an axis, and passes them to `body`.
Stmt with_region(const KernelInput& input, const PrimExpr& r, int64_t side,
                 const std::function<Stmt(const PrimExpr&, const PrimExpr&)>& body) {
  const PrimExpr scale = real(input.attrs<ops::ROIPoolAttrs>().spatial_scale);
  const auto edge = [&](int64_t k) { return rounded_edge(real_item(input.inputs[1], r * 5 + k) * scale); };
  return bind(edge(side), [&](const PrimExpr& low) {
    return bind(make_binary(BinaryOp::max, edge(side + 2) - low + 1, make_int(1)),
                [&](const PrimExpr& length) { return body(low, length); });
  });
}

Stmt roi_pool_rule(const KernelInput& input) {
  const Line &data = input.inputs[0], &rois = input.inputs[1], &out = input.outputs[0];
  const int64_t channels = out.shape[1], height = out.shape[2], width = out.shape[3];
  const auto region = [&](const PrimExpr& r, const PrimExpr& batch) {
    return with_region(input, r, 2, [&](const PrimExpr& top, const PrimExpr& rows) {
      return with_region(input, r, 1, [&](const PrimExpr& left, const PrimExpr& columns) {
        return each_index({channels, height, width}, [&](const Index& i) {
          const PrimExpr plane = (batch * channels + i[0]) * (data.shape[2] * data.shape[3]);
          const PrimExpr place = ((r * channels + i[0]) * height + i[1]) * width + i[2];
          return pool_element(input, plane, pool_bin(top, rows, i[1], height, data.shape[2]),
                              pool_bin(left, columns, i[2], width, data.shape[3]), place);
        });
      });
    });
  };
  return each_parallel(input, out.shape[0], out.size() * 16, [&](const PrimExpr& r) {
    return bind(make_cast(kIndexType, real_item(rois, r * 5)), [&](const PrimExpr& batch) {
      return make_seq({tir::make_assert(
                           is_within(batch, make_int(0), make_int(data.shape[0])),
                           "vision.roi_pool: a region is of an image that data does not have; check its first element"),
                       region(r, batch)});
    });
  });
}

// ---- yolo_reorg

Compute yolo_reorg_rule(const RuleInput& input) {
  const int64_t s = input.attrs<ops::YoloReorgAttrs>().stride;
  const Shape x = static_shape(input, input.in_types[0]->shape), y = static_shape(input, input.out_types[0]->shape);
  const int64_t channels = x[1], height = x[2], width = x[3], deep = channels / (s * s);
  return single_stage(input, map_stage(input.make_output(), [&](const Index& i) {
                        // The position in a plane of the result, interpreted in the data's shape, and its position in
                        // the data interpreted as wider planes.
                        const auto div = [](const PrimExpr& a, int64_t b) { return floor_div(a, make_int(b)); };
                        const auto mod = [](const PrimExpr& a, int64_t b) { return floor_mod(a, make_int(b)); };
                        const PrimExpr at = (i[1] * y[2] + i[2]) * y[3] + i[3];
                        const PrimExpr j = mod(at, width), r = mod(div(at, width), height), k = div(at, width * height);
                        const PrimExpr shift = div(k, deep), row = r * s + div(shift, s),
                                       column = j * s + mod(shift, s);
                        const PrimExpr from = (mod(k, deep) * (height * s) + row) * (width * s) + column;
                        return load(input.inputs[0],
                                    {i[0], div(from, width * height), mod(div(from, width), height), mod(from, width)});
                      }));
}

}  // namespace

void register_detection_rules() {
  set_kernel_rule("vision.multibox_prior", multibox_prior_rule);
  set_kernel_rule("vision.multibox_transform_loc", multibox_transform_loc_rule);
  set_kernel_rule("vision.roi_pool", roi_pool_rule);
  set_rule("vision.yolo_reorg", yolo_reorg_rule);
}

}  // namespace headrace::lower
