// Options of stages in processes of their own, as plain data, so that a loader can fill them in without the code that
// starts processes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "executors/pipeline/stage_code.h"

namespace headrace::executors::pipeline::isolation {

class ObjectCodec;
using Codec = std::shared_ptr<const ObjectCodec>;

struct ProcessOptions {
  // A call may be made twice with the same inputs: after a crash it is made again, at most kMostReplays times.
  bool is_pure = false;
  bool is_program = false;  // StageCode::is_program of the code in the process
  // The process is killed when a call takes longer, and the requests of that call end with StageTimeout; 0: never.
  double time_limit_seconds = 0;
  double start_seconds = 60;  // how long a process may take until it is ready
  // After so many ends of the process without a call that returned between them, calls fail at once, and it is started
  // again once a second.
  uint32_t most_restarts = 5;
  size_t most_bytes = size_t{1} << 30;  // limit for a call's inputs of any type, and for its outputs
  Codec codec = {};                     // converts values of another language
};
inline constexpr int kMostReplays = 2;

// A program of an open file.
struct ProgramFile {
  std::shared_ptr<const Descriptor> file;
  std::string name;          // file name for messages; weights in another file lie beside it
  std::string section = {};  // the part of the file that is the artifact; empty: all of it
  std::string program = {};  // empty: the first one
};

struct ProgramFiles {
  std::vector<ProgramFile> programs;  // one, or with a batch those that differ in their batch
  bool has_batch = false;
  bool any_rows = false;  // whether requests of a batch may have any number of rows
  int32_t threads = 1;
  std::vector<int32_t> cpus = {};
  Fallback fallback = Fallback::native;
};

// make_program_stage of program_stage.h, for those who link it.
using MakeProgramStage = std::function<std::shared_ptr<StageCode>(const ProgramFiles&, const ProcessOptions&)>;

}  // namespace headrace::executors::pipeline::isolation
