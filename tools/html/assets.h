// The scripts and styles of pages, as CMake embeds them.
#pragma once

#include "tools/html/page.h"

namespace headrace::tools::html {

extern const Asset kDagre, kKit, kFold, kGraph, kDescribe, kExplain, kInspect, kGraphStyle, kTimeline, kTimelineStyle,
    kBench, kBenchStyle, kPipeline, kPipelineStyle;

}  // namespace headrace::tools::html
