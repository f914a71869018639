#include <algorithm>

#include "conformance/cases.h"

namespace headrace::conformance {

namespace {

// An op with attributes: the tensors of a variant ("x (2, 3) w* (4, 3) i (2):int32", where * marks a constant), and its
// call. Parameters whose names begin with p get positive values.
struct Variant {
  const char* name;
  const char* params;
  const char* body;
  const char* disabled_pass = "";
};

constexpr const char* kSimplify = "SimplifyExpr";  // it removes ops that give their operand

constexpr Variant kVariants[] = {
    {"clip/inner", "x (3, 5)", "clip(%x, a_min=-0.5f, a_max=0.25f)"},
    {"clip/above", "x (3, 5)", "clip(%x, a_min=0f, a_max=6f)"},
    {"clip/exchanged_bounds", "x (3, 5)", "clip(%x, a_min=0.25f, a_max=-0.5f)"},
    {"nn.leaky_relu/alpha", "x (3, 5)", "nn.leaky_relu(%x, alpha=0.3f)"},
    {"nn.prelu/channels", "x (2, 3, 4) a* (3)", "nn.prelu(%x, %a)"},
    {"cast/to_int", "x (3, 5)", "cast(%x, dtype=\"int32\")"},
    {"cast/from_int", "i (3, 5):int32", "cast(%i, dtype=\"float32\")"},
    {"nn.bias_add/channels", "x (2, 3, 4, 5) b* (3)", "nn.bias_add(%x, %b)"},
    {"nn.bias_add/last", "x (2, 5) b* (5)", "nn.bias_add(%x, %b, axis=-1)"},
    {"nn.bias_add/parameter", "x (2, 3, 4, 5) b (3)", "nn.bias_add(%x, %b)"},
    {"nn.conv1d/padding", "x (2, 3, 9) w* (4, 3, 3)", "nn.conv1d(%x, %w, padding=[1, 2])"},
    {"nn.conv1d/strides", "x (2, 4, 11) w* (6, 2, 3)", "nn.conv1d(%x, %w, strides=[2], dilation=[2], groups=2)"},
    {"nn.conv2d/plain", "x (1, 4, 9, 7) w* (6, 4, 3, 3)", "nn.conv2d(%x, %w)"},
    {"nn.conv2d/batch", "x (3, 4, 6, 6) w* (5, 4, 3, 3)", "nn.conv2d(%x, %w)"},
    {"nn.conv2d/one_by_one", "x (1, 8, 5, 5) w* (16, 8, 1, 1)", "nn.conv2d(%x, %w)"},
    {"nn.conv2d/padding", "x (1, 4, 9, 7) w* (6, 4, 3, 3)", "nn.conv2d(%x, %w, padding=[1, 1, 1, 1])"},
    {"nn.conv2d/uneven_padding", "x (1, 4, 9, 7) w* (6, 4, 3, 3)", "nn.conv2d(%x, %w, padding=[0, 1, 2, 3])"},
    {"nn.conv2d/strides", "x (1, 4, 9, 8) w* (6, 4, 3, 3)", "nn.conv2d(%x, %w, strides=[2, 1])"},
    {"nn.conv2d/dilation", "x (1, 4, 9, 9) w* (6, 4, 3, 3)", "nn.conv2d(%x, %w, dilation=[2, 3])"},
    {"nn.conv2d/groups", "x (1, 8, 6, 6) w* (4, 4, 3, 3)", "nn.conv2d(%x, %w, groups=2)"},
    {"nn.conv2d/depthwise", "x (1, 6, 6, 6) w* (6, 1, 3, 3)", "nn.conv2d(%x, %w, groups=6, padding=[1, 1, 1, 1])"},
    {"nn.conv2d/weights_parameter", "x (1, 4, 6, 6) w (6, 4, 3, 3)", "nn.conv2d(%x, %w)"},
    {"nn.conv2d/channels_last", "x (1, 6, 6, 4) w* (3, 3, 4, 6)",
     "nn.conv2d(%x, %w, data_layout=\"NHWC\", kernel_layout=\"HWIO\")"},
    {"nn.conv2d/large", "x (2, 16, 17, 19) w* (33, 16, 3, 3)", "nn.conv2d(%x, %w, padding=[1, 1, 1, 1])"},
    {"nn.conv2d/pointwise", "x (1, 16, 7, 9) w* (17, 16, 1, 1)", "nn.conv2d(%x, %w)"},
    {"nn.conv2d/no_image", "x (0, 4, 6, 6) w* (6, 4, 3, 3)", "nn.conv2d(%x, %w)"},
    {"nn.conv2d/int_result", "x (1, 4, 6, 6):int8 w* (6, 4, 3, 3):int8", "nn.conv2d(%x, %w, out_dtype=\"int32\")"},
    {"nn.conv3d/strides", "x (1, 4, 5, 6, 7) w* (6, 2, 2, 3, 2)",
     "nn.conv3d(%x, %w, strides=[2, 1, 2], padding=[1, 0, 1, 0, 1, 0], dilation=[1, 2, 1], groups=2)"},
    {"nn.conv3d/plain", "x (1, 2, 4, 5, 6) w* (3, 2, 2, 2, 2)", "nn.conv3d(%x, %w)"},
    {"nn.conv1d_transpose/padding", "x (1, 4, 5) w* (4, 3, 3)",
     "nn.conv1d_transpose(%x, %w, strides=[2], padding=[1, 0], output_padding=[1])"},
    {"nn.conv2d_transpose/padding", "x (1, 4, 5, 5) w* (4, 3, 3, 3)",
     "nn.conv2d_transpose(%x, %w, strides=[2, 3], padding=[1, 0, 0, 1], output_padding=[1, 2], groups=2)"},
    {"nn.conv2d_transpose/dilation", "x (1, 4, 5, 5) w* (4, 3, 3, 3)", "nn.conv2d_transpose(%x, %w, dilation=[2, 1])"},
    {"nn.conv3d_transpose/strides", "x (1, 2, 3, 4, 5) w* (2, 3, 2, 3, 2)",
     "nn.conv3d_transpose(%x, %w, strides=[2, 1, 2])"},
    {"nn.conv2d_transpose/strides", "x (1, 4, 5, 5) w* (4, 3, 3, 3)", "nn.conv2d_transpose(%x, %w, strides=[2, 2])"},
    {"nn.dense/plain", "x (3, 8) w* (5, 8)", "nn.dense(%x, %w)"},
    {"nn.dense/one_row", "x (1, 16) w* (10, 16)", "nn.dense(%x, %w)"},
    {"nn.dense/parameter", "x (3, 8) w (5, 8)", "nn.dense(%x, %w)"},
    {"nn.dense/three_axes", "x (2, 3, 8) w* (5, 8)", "nn.dense(%x, %w)"},
    {"nn.dense/large", "x (17, 67) w* (35, 67)", "nn.dense(%x, %w)"},
    {"nn.dense/units", "x (3, 8) w* (5, 8)", "nn.dense(%x, %w, units=5)"},
    {"nn.dense/int_result", "x (3, 8):int8 w* (5, 8):int8", "nn.dense(%x, %w, out_dtype=\"int32\")"},
    {"nn.dense/no_rows", "x (0, 8) w* (5, 8)", "nn.dense(%x, %w)"},
    {"nn.matmul/left_transposed", "x (8, 3) w* (8, 5)", "nn.matmul(%x, %w, transpose_a=True)"},
    {"nn.matmul/plain", "x (3, 8) w* (8, 5)", "nn.matmul(%x, %w)"},
    {"nn.matmul/transposed", "x (8, 3) w (5, 8)", "nn.matmul(%x, %w, transpose_a=True, transpose_b=True)"},
    {"nn.batch_matmul/plain", "x (2, 3, 4) y (2, 5, 4)", "nn.batch_matmul(%x, %y)"},
    {"nn.batch_matmul/not_transposed", "x (2, 3, 4) y (2, 4, 5)", "nn.batch_matmul(%x, %y, transpose_b=False)"},
    {"nn.batch_matmul/left_transposed", "x (2, 4, 3) y (2, 5, 4)", "nn.batch_matmul(%x, %y, transpose_a=True)"},
    {"nn.batch_matmul/constant", "x (2, 3, 4) c* (2, 5, 4)", "nn.batch_matmul(%x, %c)"},
    {"nn.batch_matmul/large", "x (3, 17, 33) y (3, 19, 33)", "nn.batch_matmul(%x, %y)"},
    {"nn.batch_matmul/one_batch", "x (1, 3, 4) y (2, 5, 4)", "nn.batch_matmul(%x, %y)"},
    {"nn.max_pool2d/plain", "x (1, 3, 8, 8)", "nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2])"},
    {"nn.max_pool2d/padding", "x (1, 3, 7, 8)",
     "nn.max_pool2d(%x, pool_size=[3, 3], strides=[2, 1], padding=[1, 0, 1, 2])"},
    {"nn.max_pool2d/ceil", "x (1, 3, 7, 8)", "nn.max_pool2d(%x, pool_size=[3, 2], strides=[2, 3], ceil_mode=True)"},
    {"nn.max_pool2d/dilation", "x (1, 3, 9, 9)", "nn.max_pool2d(%x, pool_size=[2, 2], dilation=[2, 3])"},
    {"nn.avg_pool2d/plain", "x (1, 3, 8, 8)", "nn.avg_pool2d(%x, pool_size=[2, 2], strides=[2, 2])"},
    {"nn.avg_pool2d/padding", "x (1, 3, 7, 8)", "nn.avg_pool2d(%x, pool_size=[3, 3], padding=[1, 1, 1, 1])"},
    {"nn.avg_pool2d/counted_padding", "x (1, 3, 7, 8)",
     "nn.avg_pool2d(%x, pool_size=[3, 3], padding=[1, 0, 1, 1], count_include_pad=True)"},
    {"nn.avg_pool2d/ceil", "x (1, 3, 7, 8)", "nn.avg_pool2d(%x, pool_size=[3, 3], strides=[2, 2], ceil_mode=True)"},
    {"nn.avg_pool2d/ceil_and_counted", "x (1, 3, 6, 8)",
     "nn.avg_pool2d(%x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1], ceil_mode=True, "
     "count_include_pad=True)"},
    {"nn.max_pool1d/ceil", "x (2, 3, 8)", "nn.max_pool1d(%x, pool_size=[3], strides=[2], ceil_mode=True)"},
    {"nn.avg_pool1d/ceil", "x (2, 3, 8)", "nn.avg_pool1d(%x, pool_size=[3], strides=[2], ceil_mode=True)"},
    {"nn.max_pool3d/padding", "x (1, 2, 5, 6, 7)",
     "nn.max_pool3d(%x, pool_size=[2, 3, 2], strides=[2, 1, 2], padding=[1, 0, 1, 0, 1, 1])"},
    {"nn.max_pool3d/dilation", "x (1, 2, 5, 6, 7)", "nn.max_pool3d(%x, pool_size=[2, 2, 2], dilation=[2, 1, 3])"},
    {"nn.avg_pool3d/padding", "x (1, 2, 5, 6, 7)",
     "nn.avg_pool3d(%x, pool_size=[2, 3, 2], strides=[2, 1, 2], padding=[1, 0, 1, 0, 1, 1])"},
    {"nn.avg_pool3d/counted_padding", "x (1, 2, 5, 6, 7)",
     "nn.avg_pool3d(%x, pool_size=[2, 3, 2], padding=[1, 0, 1, 0, 1, 1], count_include_pad=True)"},
    {"nn.avg_pool2d/dilation", "x (1, 3, 9, 9)", "nn.avg_pool2d(%x, pool_size=[2, 2], dilation=[2, 3])"},
    {"nn.max_pool2d/large", "x (2, 17, 15, 19)", "nn.max_pool2d(%x, pool_size=[3, 3], strides=[2, 2])"},
    {"nn.max_pool2d/channels_last", "x (1, 7, 8, 3)",
     "nn.max_pool2d(%x, pool_size=[3, 2], strides=[2, 2], layout=\"NHWC\")"},
    {"nn.avg_pool2d/channels_last", "x (1, 7, 8, 3)",
     "nn.avg_pool2d(%x, pool_size=[3, 2], strides=[2, 2], layout=\"NHWC\")"},
    {"nn.global_avg_pool2d/channels_last", "x (2, 5, 4, 3)", "nn.global_avg_pool2d(%x, layout=\"NHWC\")"},
    {"nn.avg_pool1d/dilation", "x (2, 3, 9)", "nn.avg_pool1d(%x, pool_size=[3], dilation=[2])"},
    {"nn.avg_pool3d/dilation", "x (1, 2, 5, 6, 7)", "nn.avg_pool3d(%x, pool_size=[2, 2, 2], dilation=[2, 1, 3])"},
    {"nn.avg_pool3d/ceil", "x (1, 2, 6, 6, 7)",
     "nn.avg_pool3d(%x, pool_size=[3, 3, 2], strides=[2, 2, 2], ceil_mode=True)"},
    {"nn.conv1d/sizes", "x (2, 3, 9) w* (4, 3, 2)", "nn.conv1d(%x, %w, channels=4, kernel_size=[2])"},
    {"nn.conv2d/sizes", "x (1, 4, 6, 5) w* (6, 4, 3, 2)", "nn.conv2d(%x, %w, channels=6, kernel_size=[3, 2])"},
    {"nn.conv3d/sizes", "x (1, 2, 4, 5, 6) w* (3, 2, 2, 1, 3)", "nn.conv3d(%x, %w, channels=3, kernel_size=[2, 1, 3])"},
    {"nn.conv1d_transpose/sizes", "x (1, 4, 5) w* (4, 3, 2)",
     "nn.conv1d_transpose(%x, %w, channels=3, kernel_size=[2], dilation=[3])"},
    {"nn.conv2d_transpose/sizes", "x (1, 4, 5, 5) w* (4, 3, 3, 2)",
     "nn.conv2d_transpose(%x, %w, channels=3, kernel_size=[3, 2])"},
    {"nn.conv3d_transpose/sizes", "x (1, 2, 3, 4, 5) w* (2, 3, 2, 3, 2)",
     "nn.conv3d_transpose(%x, %w, channels=3, kernel_size=[2, 3, 2], strides=[2, 2, 2], output_padding=[1, 0, 1])"},
    {"nn.instance_norm/no_factor", "x (2, 3, 4, 5) g* (3) b* (3)",
     "nn.instance_norm(%x, %g, %b, epsilon=0.125f, scale=False)"},
    {"nn.matmul/units", "x (3, 8):int8 w* (8, 5):int8", "nn.matmul(%x, %w, units=5, out_dtype=\"int32\")"},
    {"nn.upsampling3d/linear", "x (1, 2, 3, 4, 2)",
     "nn.upsampling3d(%x, scale_d=2f, scale_h=2f, scale_w=3f, method=\"trilinear\", "
     "coordinate_transformation_mode=\"align_corners\")"},
    {"nn.upsampling3d/channels_last", "x (1, 2, 3, 4, 2)", "nn.upsampling3d(%x, scale_h=2f, layout=\"NDHWC\")"},
    {"nn.depth_to_space/blocks", "x (1, 18, 2, 3)", "nn.depth_to_space(%x, block_size=3, mode=\"CRD\")"},
    {"nn.space_to_depth/blocks", "x (1, 2, 6, 3)", "nn.space_to_depth(%x, block_size=3)"},
    {"image.resize1d/corners", "x (1, 2, 4)",
     "image.resize1d(%x, size=[7], coordinate_transformation_mode=\"align_corners\")"},
    {"image.resize1d/cubic", "x (1, 2, 5)",
     "image.resize1d(%x, size=[7], method=\"cubic\", cubic_alpha=-0.75f, cubic_exclude=1)"},
    {"image.resize1d/channels_last", "x (1, 5, 2)", "image.resize1d(%x, size=[7], layout=\"NWC\")"},
    {"image.resize3d/corners", "x (1, 2, 3, 4, 5)",
     "image.resize3d(%x, size=[4, 5, 6], coordinate_transformation_mode=\"align_corners\")"},
    {"image.resize3d/cubic", "x (1, 2, 3, 4, 5)",
     "image.resize3d(%x, size=[4, 5, 6], method=\"cubic\", cubic_alpha=-0.75f, cubic_exclude=1)"},
    {"image.resize3d/channels_last", "x (1, 3, 4, 5, 2)", "image.resize3d(%x, size=[4, 5, 6], layout=\"NDHWC\")"},
    {"image.resize1d/int_to_float", "x (1, 2, 4):int8", "image.resize1d(%x, size=[7], out_dtype=\"float32\")"},
    {"image.resize2d/int_to_float", "x (1, 2, 4, 4):int8", "image.resize2d(%x, size=[7, 3], out_dtype=\"float32\")"},
    {"image.resize3d/int_to_float", "x (1, 2, 2, 3, 4):int8",
     "image.resize3d(%x, size=[3, 2, 5], out_dtype=\"float32\")"},
    {"nn.adaptive_avg_pool1d/channels_last", "x (1, 7, 3)",
     "nn.adaptive_avg_pool1d(%x, output_size=[3], layout=\"NWC\")"},
    {"nn.adaptive_max_pool1d/channels_last", "x (1, 7, 3)",
     "nn.adaptive_max_pool1d(%x, output_size=[3], layout=\"NWC\")"},
    {"nn.adaptive_avg_pool3d/channels_last", "x (1, 4, 5, 7, 3)",
     "nn.adaptive_avg_pool3d(%x, output_size=[2, 2, 3], layout=\"NDHWC\")"},
    {"nn.adaptive_max_pool3d/channels_last", "x (1, 4, 5, 7, 3)",
     "nn.adaptive_max_pool3d(%x, output_size=[2, 2, 3], layout=\"NDHWC\")"},
    {"one_hot/depth", "i (2, 3):int32 x () y ()", "one_hot(%i, %x, %y, depth=7)"},
    {"variance/excluded", "x (2, 3, 4) m (2, 1, 4)", "variance(%x, %m, axis=[0, 2], exclude=True)"},
    {"cumprod/to_int64", "i (2, 3):int8", "cumprod(%i, axis=1, dtype=\"int64\")"},
    {"qnn.batch_matmul/transposed", "a (2, 8, 3):int8 b (2, 8, 5):int8",
     "qnn.batch_matmul(%a, %b, 3, -7, 0.5f, 0.25f, transpose_a=True, transpose_b=False)"},
    {"qnn.avg_pool2d/ceil", "a (1, 3, 7, 8):uint8",
     "qnn.avg_pool2d(%a, 0.5f, 3, 0.25f, 9, pool_size=[2, 3], strides=[2, 2], ceil_mode=True)"},
    {"qnn.avg_pool2d/channels_last", "a (1, 7, 8, 3):uint8",
     "qnn.avg_pool2d(%a, 0.5f, 3, 0.25f, 9, pool_size=[2, 3], layout=\"NHWC\")"},
    {"qnn.conv2d/dilation", "a (1, 3, 7, 8):uint8 w* (4, 3, 2, 2):int8",
     "qnn.conv2d(%a, %w, 3, 0, 0.5f, 0.25f, channels=4, kernel_size=[2, 2], dilation=[2, 1])"},
    {"qnn.conv2d_transpose/padding", "a (1, 4, 4, 5):uint8 w* (4, 6, 3, 3):uint8",
     "qnn.conv2d_transpose(%a, %w, 9, 5, 0.5f, 0.25f, channels=6, kernel_size=[3, 3], strides=[2, 2], "
     "padding=[1, 0, 0, 1], output_padding=[1, 0])"},
    {"nn.global_max_pool2d/plain", "x (2, 3, 5, 4)", "nn.global_max_pool2d(%x)"},
    {"nn.global_avg_pool2d/plain", "x (2, 3, 5, 4)", "nn.global_avg_pool2d(%x)"},
    {"nn.adaptive_avg_pool2d/uneven", "x (1, 3, 7, 8)", "nn.adaptive_avg_pool2d(%x, output_size=[3, 4])"},
    {"nn.softmax/last", "x (3, 5)", "nn.softmax(%x)"},
    {"nn.softmax/first", "x (3, 5, 2)", "nn.softmax(%x, axis=0)"},
    {"nn.softmax/middle", "x (3, 5, 2)", "nn.softmax(%x, axis=1)"},
    {"nn.softmax/large", "x (17, 259)", "nn.softmax(%x)"},
    {"nn.softmax/no_rows", "x (0, 5)", "nn.softmax(%x)"},
    {"nn.softmax/no_columns", "x (3, 0)", "nn.softmax(%x)"},
    {"nn.log_softmax/no_columns", "x (3, 0)", "nn.log_softmax(%x)"},
    {"nn.log_softmax/first", "x (3, 5, 2)", "nn.log_softmax(%x, axis=0)"},
    {"nn.log_softmax/last", "x (3, 5)", "nn.log_softmax(%x)"},
    {"nn.layer_norm/last", "x (3, 8) g* (8) b* (8)", "nn.layer_norm(%x, %g, %b, epsilon=0.001f)"},
    {"nn.layer_norm/inner", "x (2, 6, 3) g* (6) b* (6)", "nn.layer_norm(%x, %g, %b, axis=1)"},
    {"nn.layer_norm/no_offset", "x (3, 8) g* (8) b* (8)", "nn.layer_norm(%x, %g, %b, center=False)"},
    {"nn.layer_norm/no_factor", "x (3, 8) g* (8) b* (8)", "nn.layer_norm(%x, %g, %b, scale=False)"},
    {"nn.layer_norm/large", "x (5, 259) g* (259) b* (259)", "nn.layer_norm(%x, %g, %b)"},
    {"nn.lrn/plain", "x (1, 6, 4, 4)", "nn.lrn(%x, size=3, alpha=0.5f, beta=0.6f, bias=1.5f)"},
    {"concatenate/two", "x (2, 3) y (2, 4)", "concatenate((%x, %y), axis=1)"},
    {"concatenate/three", "x (2, 3, 2) y (1, 3, 2) z (3, 3, 2)", "concatenate((%x, %y, %z), axis=0)"},
    {"concatenate/twice_one", "x (2, 3)", "concatenate((%x, %x), axis=-1)"},
    {"concatenate/constant", "x (2, 3) c* (2, 2)", "concatenate((%x, %c), axis=1)"},
    {"concatenate/large", "x (17, 33) y (17, 29)", "concatenate((%x, %y), axis=1)"},
    {"concatenate/no_rows", "x (0, 3) y (2, 3)", "concatenate((%x, %y), axis=0)"},
    {"split/equal", "x (2, 6)", "let %s = split(%x, indices_or_sections=3, axis=1); (%s.2, %s.0)"},
    {"split/at_places", "x (2, 6)", "let %s = split(%x, indices_or_sections=[1, 4], axis=1); (%s.0, %s.1, %s.2)"},
    {"reshape/plain", "x (2, 6)", "reshape(%x, newshape=[3, 4])"},
    {"reshape/rest", "x (2, 3, 4)", "reshape(%x, newshape=[0, -1])"},
    {"nn.batch_flatten/plain", "x (2, 3, 4)", "nn.batch_flatten(%x)"},
    {"squeeze/axis", "x (2, 1, 3, 1)", "squeeze(%x, axis=[1])"},
    {"expand_dims/inner", "x (2, 3)", "expand_dims(%x, axis=1, num_newaxis=2)"},
    {"transpose/reversed", "x (2, 3, 4)", "transpose(%x)"},
    {"transpose/cycled", "x (2, 3, 4)", "transpose(%x, axes=[2, 0, 1])"},
    {"transpose/inner", "x (2, 3, 4, 5)", "transpose(%x, axes=[0, 2, 1, 3])"},
    {"transpose/large", "x (17, 33, 5)", "transpose(%x, axes=[1, 2, 0])"},
    {"transpose/no_elements", "x (0, 3)", "transpose(%x)"},
    {"strided_slice/axes", "x (5, 6)", "strided_slice(%x, begin=[1], end=[5], strides=[2], axes=[1])"},
    {"strided_slice/backwards", "x (5, 6)", "strided_slice(%x, begin=[4, 0], end=[0, 6], strides=[-2, 1])"},
    {"strided_slice/steps", "x (5, 6)", "strided_slice(%x, begin=[1, 0], end=[5, 6], strides=[2, 3])"},
    {"nn.pad/value", "x (2, 3)", "nn.pad(%x, 1.5f, pad_width=[[1, 0], [2, 1]])"},
    {"nn.pad/edge", "x (2, 3)", "nn.pad(%x, 0f, pad_width=[[1, 0], [2, 1]], pad_mode=\"edge\")"},
    {"nn.pad/reflect", "x (2, 4)", "nn.pad(%x, 0f, pad_width=[[1, 0], [2, 1]], pad_mode=\"reflect\")"},
    {"sum/all", "x (2, 3)", "sum(%x)"},
    {"sum/scalar", "x ()", "sum(%x)"},
    {"sum/no_elements", "x (2, 0)", "sum(%x, axis=[1])"},
    {"sum/large", "x (17, 259)", "sum(%x, axis=[1])"},
    {"sum/excluded", "x (2, 3, 4)", "sum(%x, axis=[1], exclude=True)"},
    {"mean/all", "x (2, 3, 4)", "mean(%x)"},
    {"sum/no_axes", "x (2, 3)", "sum(%x, axis=[])", kSimplify},
    {"sum/all_excluded", "x (2, 3)", "sum(%x, exclude=True)", kSimplify},
    {"mean/no_axes", "x (2, 3)", "mean(%x, axis=[])", kSimplify},
    {"mean/all_excluded", "x (2, 3)", "mean(%x, exclude=True)", kSimplify},
    {"max/no_axes", "x (2, 3)", "max(%x, axis=[])", kSimplify},
    {"max/all_excluded", "x (2, 3)", "max(%x, exclude=True)", kSimplify},
    {"min/no_axes", "x (2, 3)", "min(%x, axis=[])", kSimplify},
    {"min/all_excluded", "x (2, 3)", "min(%x, exclude=True)", kSimplify},
    {"prod/no_axes", "x (2, 3)", "prod(%x, axis=[])", kSimplify},
    {"prod/all_excluded", "x (2, 3)", "prod(%x, exclude=True)", kSimplify},
    {"argmax/no_axes", "x (2, 3)", "argmax(%x, axis=[])", kSimplify},
    {"argmax/all_excluded", "x (2, 3)", "argmax(%x, exclude=True)", kSimplify},
    {"argmin/no_axes", "x (2, 3)", "argmin(%x, axis=[])", kSimplify},
    {"argmin/all_excluded", "x (2, 3)", "argmin(%x, exclude=True)", kSimplify},
    {"max/excluded", "x (2, 3, 4)", "max(%x, axis=[1], exclude=True)"},
    {"max/kept", "x (2, 3, 4)", "max(%x, axis=[0, 2], keepdims=True)"},
    {"min/kept", "x (2, 3, 4)", "min(%x, axis=[1], keepdims=True)"},
    {"argmin/axis", "x (2, 5)", "argmin(%x, axis=[1], keepdims=True)"},
    {"all/no_axes", "c (2, 3):bool", "all(%c, axis=[])", kSimplify},
    {"all/all_excluded", "c (2, 3):bool", "all(%c, exclude=True)", kSimplify},
    {"any/no_axes", "c (2, 3):bool", "any(%c, axis=[])", kSimplify},
    {"any/all_excluded", "c (2, 3):bool", "any(%c, exclude=True)", kSimplify},
    {"sum/inner", "x (2, 3, 4)", "sum(%x, axis=[1])"},
    {"sum/kept", "x (2, 3, 4)", "sum(%x, axis=[0, 2], keepdims=True)"},
    {"mean/spatial", "x (2, 3, 4, 5)", "mean(%x, axis=[2, 3], keepdims=True)"},
    {"max/last", "x (2, 3, 4)", "max(%x, axis=[-1])"},
    {"min/all", "x (2, 3)", "min(%x)"},
    {"prod/excluded", "x (2, 3, 4)", "prod(%x, axis=[1], exclude=True)"},
    {"argmax/axis", "x (2, 5)", "argmax(%x, axis=[1])"},
    {"take/rows", "x (5, 3) i* (2):int32", "take(%x, %i, axis=0)"},
    {"where/plain", "c (2, 3):bool x (2, 3) y (2, 3)", "where(%c, %x, %y)"},
    {"tile/plain", "x (2, 3)", "tile(%x, reps=[2, 2])"},
    {"repeat/axis", "x (2, 3)", "repeat(%x, repeats=2, axis=1)"},
    {"stack/inner", "x (2, 3) y (2, 3)", "stack((%x, %y), axis=1)"},
    {"cumsum/axis", "x (2, 5)", "cumsum(%x, axis=1)"},
    {"image.resize2d/linear", "x (1, 2, 4, 4)",
     "image.resize2d(%x, size=[6, 7], method=\"linear\", coordinate_transformation_mode=\"half_pixel\")"},
    {"image.resize2d/corners", "x (1, 2, 4, 4)",
     "image.resize2d(%x, size=[6, 7], method=\"linear\", coordinate_transformation_mode=\"align_corners\")"},
    {"image.resize2d/asymmetric", "x (1, 2, 4, 4)",
     "image.resize2d(%x, size=[6, 7], method=\"nearest_neighbor\", coordinate_transformation_mode=\"asymmetric\")"},
    {"image.resize2d/cubic", "x (1, 2, 5, 4)",
     "image.resize2d(%x, size=[6, 7], method=\"cubic\", cubic_alpha=-0.75f, cubic_exclude=1)"},
    {"image.resize2d/channels_last", "x (1, 4, 4, 2)", "image.resize2d(%x, size=[6, 7], layout=\"NHWC\")"},
    {"nn.batch_norm/constants", "x (2, 3, 4, 5) g* (3) b* (3) m* (3) p* (3)",
     "let %n = nn.batch_norm(%x, %g, %b, %m, %p); %n.0"},
    {"nn.batch_norm/last", "x (2, 4, 5, 3) g* (3) b* (3) m* (3) p* (3)",
     "let %n = nn.batch_norm(%x, %g, %b, %m, %p, axis=3, epsilon=0.125f, scale=False); %n.0"},
    {"nn.upsampling/nearest", "x (1, 2, 3, 4)", "nn.upsampling(%x, scale_h=2f, scale_w=3f)"},
    {"nn.upsampling/linear", "x (1, 2, 3, 4)", "nn.upsampling(%x, scale_h=2f, scale_w=3f, method=\"bilinear\")"},
    {"image.resize2d/nearest", "x (1, 2, 4, 4)", "image.resize2d(%x, size=[8, 8], method=\"nearest_neighbor\")"},
};

// Reads "x (2, 3) w* (4):int32" as parameters of a program, and the constants among them.
Case case_of(const Variant& variant) {
  Case made{.name = variant.name, .text = "def @main(", .disabled_pass = variant.disabled_pass};
  const std::string spec = variant.params;
  for (size_t at = 0; at < spec.size();) {
    const size_t open = spec.find('(', at), close = spec.find(')', open);
    std::string name = spec.substr(at, open - at - 1);
    if (name.ends_with('*')) {
      name.pop_back();
      made.constants.push_back(name);
    }
    std::string shape = spec.substr(open, close + 1 - open), dtype = "float32";
    at = close + 1;
    if (at < spec.size() && spec[at] == ':') {
      const size_t end = std::min(spec.find(' ', at), spec.size());
      dtype = spec.substr(at + 1, end - at - 1);
      at = end;
    }
    if (shape.find(',') == std::string::npos && shape != "()") shape.insert(shape.size() - 1, ",");
    made.text += fmt::format("{}%{}: Tensor[{}, {}]", made.text.ends_with('(') ? "" : ", ", name, shape, dtype);
    while (at < spec.size() && spec[at] == ' ') ++at;
  }
  made.text += fmt::format(") {{ {} }}\n", variant.body);
  return made;
}

}  // namespace

std::vector<Case> variant_cases() {
  std::vector<Case> cases;
  for (const Variant& variant : kVariants) cases.push_back(case_of(variant));
  return cases;
}

}  // namespace headrace::conformance
