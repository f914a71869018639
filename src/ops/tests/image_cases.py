"""The cases of ops that sample images and of those that detectors use; see make_op_cases.py."""

from collections.abc import Callable

import numpy as np
from op_case_format import case, error, run_onnx
from scipy import ndimage

Data = Callable[..., np.ndarray]


def add_image_cases(data: Data) -> None:
    add_grid_cases(data)
    add_crop_cases(data)
    add_prior_cases(data)
    add_transform_loc_cases(data)
    add_region_cases(data)


def add_grid_cases(data: Data) -> None:
    matrices = data(2, 2, 3)
    grid = run_onnx("AffineGrid", [matrices, np.array([2, 1, 3, 5])], opset=20, align_corners=1)
    call = "image.affine_grid(%0, target_shape=[3, 5])"
    case("affine_grid", call, [matrices], [grid.transpose(0, 3, 1, 2)], 2e-6)
    middle = (matrices @ np.array([[0], [-1], [1]]), matrices @ np.array([[0], [1], [1]]))
    column = np.stack(middle, 2).astype("float32")
    case("affine_grid column", "image.affine_grid(%0, target_shape=[2, 1])", [matrices], [column])
    error("affine_grid shape", call, [data(2, 3, 3)], "data must be float matrices")

    x, places = data(2, 3, 5, 4), data(2, 2, 3, 6, low=-1.5, high=1.5)
    for method in ("bilinear", "nearest", "bicubic"):
        # onnxruntime rounds before it reflects, torch and Relay after it: no ties.
        places = places + np.float32(1 / 64) if method == "nearest" else places
        last = np.ascontiguousarray(places.transpose(0, 2, 3, 1))
        for padding in ("zeros", "border", "reflection"):
            for corners in (True, False):
                y = run_onnx(
                    "GridSample", [x, last], opset=16, mode=method, padding_mode=padding, align_corners=int(corners)
                )
                call = (
                    f'image.grid_sample(%0, %1, method="{method}", padding_mode="{padding}", align_corners={corners})'
                )
                case(f"grid_sample {method} {padding} {corners}", call, [x, places], [y], 1e-5)
    x, places = data(1, 2, 3, 4, 5), data(1, 3, 2, 3, 2, low=-1.25, high=1.25)
    last = np.ascontiguousarray(places.transpose(0, 2, 3, 4, 1))
    for method, name in (("bilinear", "linear"), ("nearest", "nearest")):
        y = run_onnx("GridSample", [x, last], opset=20, mode=name, padding_mode="border", align_corners=0)
        call = (
            f'image.grid_sample(%0, %1, method="{method}", layout="NCDHW", padding_mode="border", align_corners=False)'
        )
        case(f"grid_sample volume {method}", call, [x, places], [y], 1e-5)
    x, places = x[:, :, 0], places[:, :2, 0].copy()
    # A place that is NaN reads 0, as one far outside does.
    places[0, 0, 0], places[0, 1, 1, 0] = 9, 9
    y = run_onnx("GridSample", [x, np.ascontiguousarray(places.transpose(0, 2, 3, 1))], opset=16, align_corners=1)
    places[0, 0, 0], places[0, 1, 1, 0] = np.nan, np.inf
    case("grid_sample nowhere", "image.grid_sample(%0, %1)", [x, places], [y], 1e-5)
    error("grid_sample rows", "image.grid_sample(%0, %1)", [x, data(1, 3, 2, 2)], "grid must be floats [N, 2, ...]")
    call = 'image.grid_sample(%0, %1, padding_mode="wrap")'
    error("grid_sample padding", call, [x, places], "expected one of zeros, border, reflection")


def add_crop_cases(data: Data) -> None:
    x = data(2, 3, 5, 6)
    boxes = np.array([[0, 0, 1, 1], [0.25, 0.5, 0.8, 0.7], [0.9, 1.1, -0.2, 0.3], [0.3, 0.2, 0.3, 0.9]], "float32")
    index = np.array([1, 0, 1, 0], "int32")
    for method, order in (("bilinear", 1), ("nearest_neighbor", 0)):
        for height, width in ((3, 4), (1, 2)):
            y = np.empty((4, 3, height, width), "float32")
            for b, (top, left, bottom, right) in enumerate(boxes.astype("float64")):
                rows, columns = (
                    4 * (np.linspace(top, bottom, height) if height > 1 else np.array([(top + bottom) / 2])),
                    5 * np.linspace(left, right, width),
                )
                points = np.array(np.meshgrid(rows, columns, indexing="ij"))
                outside = np.any((points < 0) | (points > np.array([4, 5]).reshape(2, 1, 1)), 0)
                for c in range(3):
                    plane = x[index[b], c].astype("float64")
                    value = ndimage.map_coordinates(plane, points, order=order, mode="nearest")
                    y[b, c] = np.where(outside, 9, value)
            call = f'image.crop_and_resize(%0, %1, %2, crop_size=[{height}, {width}], method="{method}"'
            call += ", extrapolation_value=9f"
            case(f"crop_and_resize {method} {height}", call + ")", [x, boxes, index], [y], 1e-5)
            inputs = [np.ascontiguousarray(x.transpose(0, 2, 3, 1)), boxes, index.astype("int64")]
            y = y.transpose(0, 2, 3, 1)
            case(f"crop_and_resize NHWC {method} {height}", call + ', layout="NHWC")', inputs, [y], 1e-5)
    call = "image.crop_and_resize(%0, %1, %2, crop_size=[2, 2])"
    error("crop_and_resize image", call, [x, boxes, index + 1], "is of ", run=True)
    error("crop_and_resize indices", call, [x, boxes, index[:2]], "box_indices must be integers, one a box")


def add_prior_cases(data: Data) -> None:
    x, sizes, ratios = data(1, 2, 2, 3), (0.5, 0.25), (1, 2, 0.5)
    for steps, offsets, clip in (((-1, -1), (0.5, 0.5), False), ((0.25, 0.375), (0, 1), True)):
        y = []
        for i, j in np.ndindex(2, 3):
            center = [
                (at + offset) * (step if step > 0 else 1 / size)
                for at, offset, step, size in zip((i, j), offsets, steps, (2, 3), strict=True)
            ]
            shapes = [(s, s * 2 / 3) for s in sizes]
            shapes += [(0.5 / np.sqrt(r), 0.5 * 2 / 3 * np.sqrt(r)) for r in ratios[1:]]
            for height, width in shapes:
                y.append([center[1] - width / 2, center[0] - height / 2, center[1] + width / 2, center[0] + height / 2])
        y = np.array([y], "float32")
        text = lambda t: "[" + ", ".join(f"{float(v)}f" for v in t) + "]"  # noqa: E731
        call = f"vision.multibox_prior(%0, sizes={text(sizes)}, ratios={text(ratios)}, steps={text(steps)}"
        call += f", offsets={text(offsets)}, clip={clip})"
        case(f"multibox_prior {clip}", call, [x], [np.clip(y, 0, 1) if clip else y], 1e-6)
    error("multibox_prior sizes", "vision.multibox_prior(%0, sizes=[0f])", [x], "sizes must be above 0")


def add_transform_loc_cases(data: Data) -> None:
    scores = np.abs(data(2, 3, 4)) / 8
    scores[0, 1:, 1] = 0.015625
    places, low = data(2, 16), np.abs(data(1, 4, 2)) / 4
    anchors = np.concatenate([low, low + np.abs(data(1, 4, 2)) / 4], 2)
    for keeps, clip in ((False, True), (True, False)):
        y, counts = np.full((2, 4, 6), -1, "float32"), np.zeros(2, "int32")
        for b, j in np.ndindex(2, 4):
            row = scores[b, :, j] if keeps else scores[b, 1:, j]
            best = int(np.argmax(row)) + (0 if keeps else 1)
            if scores[b, best, j] < 0.125:
                best = 0
            if best == 0 and not keeps:
                continue
            box, move = anchors[0, j].astype("float64"), places[b, 4 * j : 4 * j + 4].astype("float64")
            size, center = box[2:] - box[:2], (box[2:] + box[:2]) / 2
            middle, half = move[:2] * [0.5, 0.25] * size + center, np.exp(move[2:] * [0.5, 0.125]) * size / 2
            corners = np.concatenate([middle - half, middle + half])
            corners = np.clip(corners, 0, 1) if clip else corners
            y[b, counts[b]] = [best if keeps else best - 1, row.max(), *corners]
            counts[b] += 1
        assert keeps or 0 < counts.sum() < 8
        call = "vision.multibox_transform_loc(%0, %1, %2, threshold=0.125f, variances=[0.5f, 0.25f, 0.5f, 0.125f]"
        call += f", keep_background={keeps}, clip={clip})"
        case(f"multibox_transform_loc {keeps}", call, [scores, places, anchors], [y, counts], 1e-6)
    call = "vision.multibox_transform_loc(%0, %1, %2)"
    error("multibox_transform_loc", call, [scores, places[:, :12], anchors], "loc_pred must be [N, 4 * boxes]")


def add_region_cases(data: Data) -> None:
    x = data(2, 3, 6, 8)
    regions = np.array([[0, 0, 0, 7, 5], [1, 2, 3, 8, 9], [0, 4, 4, 1, 1], [1, -3, 1, 3, 2.5]], "float32")
    for scale in (1, 0.5):
        y = run_onnx("MaxRoiPool", [x, regions], pooled_shape=[2, 4], spatial_scale=float(scale))
        call = f"vision.roi_pool(%0, %1, pooled_size=[2, 4], spatial_scale={float(scale)}f)"
        case(f"roi_pool {scale}", call, [x, regions], [y])
    error("roi_pool batch", call, [x, regions + 1], "is of ", run=True)
    error("roi_pool layout", f'{call[:-1]}, layout="NHWC")', [x, regions], "layout is 'NHWC', expected one of NCHW")
    error("roi_pool rois", call, [x, regions[:, :4]], "rois must be")
    regions[3] = [1, 4, 2, 4.25, 2.5]
    inputs = [x, regions[:, 1:].copy(), regions[:, 0].astype("int64")]
    for ratio in (2, 0):
        y = run_onnx("RoiAlign", inputs, opset=16, output_height=2, output_width=3, sampling_ratio=ratio)
        call = f"vision.roi_align(%0, %1, pooled_size=[2, 3], spatial_scale=1f, sample_ratio={ratio}, aligned=True)"
        case(f"roi_align aligned {ratio}", call, [x, regions], [y], 3e-6)
    x = data(2, 8, 4, 6)
    y = x.reshape(2, 2, 4, 2, 6, 2).transpose(0, 3, 5, 1, 2, 4).reshape(2, 32, 2, 3)
    case("yolo_reorg", "vision.yolo_reorg(%0, stride=2)", [x], [y])
    error("yolo_reorg", "vision.yolo_reorg(%0, stride=3)", [x], "must be a multiple of 9")
    empty = np.zeros((1, 4, 0, 2), "float32")
    case("yolo_reorg empty", "vision.yolo_reorg(%0, stride=2)", [empty], [np.zeros((1, 16, 0, 1), "float32")])
    # A NaN among the samples of a bin is its greatest.
    line, whole = np.array([[[[1, np.nan]]]], "float32"), np.array([[0, 0, 0, 1, 0]], "float32")
    call = 'vision.roi_align(%0, %1, pooled_size=[1, 1], spatial_scale=1f, sample_ratio=2, mode="max")'
    case("roi_align max nan", call, [line, whole], [np.full((1, 1, 1, 1), np.nan, "float32")])
    # Regions are checked where there is nothing to read of them, too.
    nothing = np.zeros((0, 0, 6, 1), "float32")
    error("roi_align empty", call, [nothing, whole], "is of ", run=True)
    far, any_ratio = np.array([[0, 0, 0, 1e6, 1]], "float32"), call.replace("sample_ratio=2", "sample_ratio=0")
    told = "region 0 needs 1000000 samples along a side of one result, not 1 to 4096; check its coordinates"
    error("roi_align far", any_ratio, [line, far], told, run=True)
    error(
        "roi_pool empty",
        "vision.roi_pool(%0, %1, pooled_size=[1, 1], spatial_scale=1f)",
        [nothing, whole],
        "is of ",
        run=True,
    )
    inputs = [np.zeros((1, 0, 2, 2), "float32"), whole[:, 1:].copy(), np.array([3], "int32")]
    error("crop_and_resize empty", "image.crop_and_resize(%0, %1, %2, crop_size=[2, 2])", inputs, "is of ", run=True)
