// Messages between a pipeline and the process of a stage. The values themselves lie in memory that both share.
//
//   pipeline: hello   process: ready, with its ports   pipeline: start   then, for each call: call, answer
//
// Either side takes a closed connection as the end of the other one.
#pragma once

#include <cstdint>

namespace headrace::executors::pipeline::isolation {

enum class MessageKind : uint32_t {
  hello,   // from the pipeline: its process is `count`
  ready,   // the memory has the ports of the code
  failed,  // there is no code; the memory has the error
  start,   // the memory has `nbytes` for inputs and `count` for outputs
  call,    // the memory has the inputs of `count` requests; 0: of one, for code without batches
  // The memory has the outputs: first those of ports with a type, then those of any type, and the error of each request
  // of a batch. With a `count` of 1 it has the error of the call instead.
  answer,
};

struct Message {
  static constexpr uint32_t kMagic = 0x48525332;  // changes with the layout of messages and values
  uint32_t magic = kMagic;
  MessageKind kind = MessageKind::hello;
  uint64_t epoch = 0;     // counts the processes of the stage
  uint64_t sequence = 0;  // counts the calls of the stage
  uint64_t nbytes = 0;    // used bytes of the memory
  uint64_t count = 0;
};
static_assert(sizeof(Message) == 40);

// Descriptors of the process: the connection, the memory, and the files that its command names.
inline constexpr int kConnection = 3, kMemory = 4, kFirstFile = 5;

// The memory at first, for ports or an error.
inline constexpr size_t kFirstBytes = size_t{1} << 20;

}  // namespace headrace::executors::pipeline::isolation
