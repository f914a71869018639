// AssignLayout: convolutions run in the layouts that make the whole function fastest by the cost model.
//
//   nn.relu(nn.conv2d(%x, %w))       %x: [1, 32, 28, 28], %w: a constant [64, 32, 3, 3]
//     ->  %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NCHW16c");
//         %1 = nn.relu(nn.conv2d(%0, layout_transform(%w, ...), data_layout="NCHW16c", kernel_layout="OIHW16i16o"));
//         layout_transform(%1, src_layout="NCHW16c", dst_layout="NCHW")
//
// A convolution has up to three forms: as written (NCHW), with channels in blocks of one vector (NCHW16c, or NCHW8c
// where vectors have 8 lanes), and from NCHW to blocks, which suits the first one of a network, whose 3 channels no
// block divides. One whose output channels are not quite whole blocks has blocks with channels of zeros, which a slice
// drops, in place of the last two. Other ops have two: as written, and in blocks where ConvertLayout can follow. A
// tensor that is needed in the other form costs a pass over its memory, once for all its readers. The forms of least
// total cost are labels of least cost (graph/labels.h): convolutions by their work and the share of the peak that
// kernels of each form reach, changes of layout by their bytes. Of two forms that take as long, because both wait for
// memory, the one with less arithmetic is chosen.
//
// Considered are convolutions over two axes in float32 and NCHW, of known sizes, of one group or one channel a group,
// whose kernel is a constant or made of constants; another kernel would be packed at each run. Layouts that the program
// has chosen stay.
//
// The choice is visible in the attributes of the convolutions and in the calls of layout_transform. ConvertLayout is
// for those who choose by hand. Needs types. Preserves results up to the order in which a kernel adds.
#pragma once

#include "cost/machine.h"
#include "pass/pass.h"

namespace headrace::passes {

// Reads "relay.AssignLayout.block" of the context's configuration; 0 without it. UserError for another number than 0, 8
// and 16.
int64_t layout_block(const pass::PassContext& context);

// Assigns layouts for one thread of `machine`, with `block` channels in a block; 0: as many as its vectors have
// elements of float32. Returns the module unchanged where these are not 8 or 16.
IRModule assign_layout(const IRModule& module, const cost::Machine& machine, int64_t block = 0);

}  // namespace headrace::passes
