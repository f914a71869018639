#include "bench/stream_peers.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <thread>

#ifdef HEADRACE_BENCH_TBB
#include <tbb/flow_graph.h>
#include <tbb/parallel_pipeline.h>
#endif
#ifdef HEADRACE_BENCH_GSTREAMER
#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>
#include <gst/gst.h>
#endif

namespace headrace::bench {

namespace {

[[maybe_unused]] constexpr int kInFlight = 64;

using StreamClock = std::chrono::steady_clock;

[[maybe_unused]] double seconds_from(StreamClock::time_point begin) {
  return std::chrono::duration<double>(StreamClock::now() - begin).count();
}

[[maybe_unused]] void work(double sleep_seconds) {
  if (sleep_seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(sleep_seconds));
}

#ifdef HEADRACE_BENCH_TBB

double time_tbb_pipeline(size_t stages, int items, double sleep) {
  int next = 0;
  tbb::filter<int, int> chain;
  for (size_t i = 0; i < stages; ++i) {
    const auto stage = tbb::make_filter<int, int>(tbb::filter_mode::serial_in_order, [sleep](int item) {
      work(sleep);
      return item;
    });
    chain = i == 0 ? stage : chain & stage;
  }
  const auto source = tbb::make_filter<void, int>(tbb::filter_mode::serial_in_order, [&](tbb::flow_control& control) {
    if (next == items) control.stop();
    return next++;
  });
  const auto sink = tbb::make_filter<int, void>(tbb::filter_mode::serial_in_order, [](int) {});
  const auto begin = StreamClock::now();
  tbb::parallel_pipeline(kInFlight, source & chain & sink);
  return seconds_from(begin);
}

double time_tbb_graph(size_t stages, int items, double sleep) {
  namespace flow = tbb::flow;
  flow::graph graph;
  int next = 0;
  flow::input_node<int> source(graph, [&](tbb::flow_control& control) {
    if (next == items) control.stop();
    return next++;
  });
  flow::limiter_node<int> limiter(graph, kInFlight);
  std::vector<std::unique_ptr<flow::function_node<int, int>>> nodes;
  for (size_t i = 0; i < stages; ++i) {
    nodes.push_back(std::make_unique<flow::function_node<int, int>>(graph, flow::serial, [sleep](int item) {
      work(sleep);
      return item;
    }));
  }
  flow::function_node<int, flow::continue_msg> sink(graph, flow::serial, [](int) { return flow::continue_msg(); });
  flow::make_edge(source, limiter);
  flow::make_edge(limiter, *nodes[0]);
  for (size_t i = 1; i < stages; ++i) flow::make_edge(*nodes[i - 1], *nodes[i]);
  flow::make_edge(*nodes.back(), sink);
  flow::make_edge(sink, limiter.decrementer());
  const auto begin = StreamClock::now();
  source.activate();
  graph.wait_for_all();
  return seconds_from(begin);
}

#endif

#ifdef HEADRACE_BENCH_GSTREAMER

GstPadProbeReturn sleep_at(GstPad*, GstPadProbeInfo*, gpointer seconds) {
  work(*static_cast<double*>(seconds));
  return GST_PAD_PROBE_OK;
}

// Elements: appsrc, for each stage a queue and an identity, appsink.
double time_gstreamer(size_t stages, int items, double sleep) {
  gst_init(nullptr, nullptr);
  std::string description = "appsrc name=src block=true max-bytes=64 format=time";
  for (size_t i = 0; i < stages; ++i)
    description += " ! queue max-size-buffers=8 max-size-bytes=0 max-size-time=0 ! identity name=s" + std::to_string(i);
  description += " ! appsink name=sink sync=false max-buffers=8";
  GstElement* pipeline = gst_parse_launch(description.c_str(), nullptr);
  if (pipeline == nullptr) throw std::runtime_error("GStreamer makes no pipeline of: " + description);
  for (size_t i = 0; i < stages && sleep > 0; ++i) {
    GstElement* stage = gst_bin_get_by_name(GST_BIN(pipeline), ("s" + std::to_string(i)).c_str());
    GstPad* pad = gst_element_get_static_pad(stage, "sink");
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, &sleep_at, &sleep, nullptr);
    gst_object_unref(pad);
    gst_object_unref(stage);
  }
  GstElement* source = gst_bin_get_by_name(GST_BIN(pipeline), "src");
  GstElement* sink = gst_bin_get_by_name(GST_BIN(pipeline), "sink");
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  const auto begin = StreamClock::now();
  std::thread feeder([&] {
    for (int i = 0; i < items; ++i)
      gst_app_src_push_buffer(GST_APP_SRC(source), gst_buffer_new_allocate(nullptr, 1, nullptr));
    gst_app_src_end_of_stream(GST_APP_SRC(source));
  });
  while (GstSample* sample = gst_app_sink_pull_sample(GST_APP_SINK(sink))) gst_sample_unref(sample);
  const double seconds = seconds_from(begin);
  feeder.join();
  gst_element_set_state(pipeline, GST_STATE_NULL);
  gst_object_unref(source);
  gst_object_unref(sink);
  gst_object_unref(pipeline);
  return seconds;
}

#endif

}  // namespace

std::vector<StreamPeer> stream_peers() {
  std::vector<StreamPeer> peers;
#ifdef HEADRACE_BENCH_TBB
  peers.push_back({.name = "oneTBB parallel_pipeline", .time = &time_tbb_pipeline});
  peers.push_back({.name = "oneTBB flow graph", .time = &time_tbb_graph});
#endif
#ifdef HEADRACE_BENCH_GSTREAMER
  peers.push_back({.name = "GStreamer queues", .has_threads = true, .time = &time_gstreamer});
#endif
  return peers;
}

}  // namespace headrace::bench
