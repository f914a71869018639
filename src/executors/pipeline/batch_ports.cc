#include "executors/pipeline/batch_ports.h"

#include <algorithm>

#include "base/error.h"

namespace headrace::executors::pipeline {
namespace {

using artifact::TensorSpec;

std::string spec_text(const TensorSpec& spec) { return type_text(Port{.spec = spec}); }

int64_t batch_of(const BatchProgram& program) {
  if (program.outputs.empty()) throw_user_error("a program without outputs has no batch");
  for (const TensorSpec& output : program.outputs) {
    if (output.shape.empty() || output.shape[0] < 1 || output.shape[0] != program.outputs[0].shape[0])
      throw_user_error(
          "output '{}' is {}; all outputs of a program that works on batches have the batch as their "
          "first dimension, which is that of output '{}', {}",
          output.name, spec_text(output), program.outputs[0].name, spec_text(program.outputs[0]));
  }
  return program.outputs[0].shape[0];
}

bool has_batch(const TensorSpec& spec, int64_t batch) { return !spec.shape.empty() && spec.shape[0] == batch; }

TensorSpec row_of(TensorSpec spec) {
  spec.shape[0] = 1;
  return spec;
}

[[noreturn]] void throw_different(std::string_view what, const TensorSpec& a, const TensorSpec& b) {
  throw_user_error(
      "{} '{}' is {} in one program and '{}', {}, in another; programs of one stage differ in their batch "
      "only, the first dimension",
      what, a.name, spec_text(a), b.name, spec_text(b));
}

void check_alike(std::string_view what, const std::vector<TensorSpec>& a, const std::vector<TensorSpec>& b) {
  if (a.size() != b.size())
    throw_user_error("one program of the stage has {} {}s, and another {}", a.size(), what, b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    const bool is_same_row = a[i].name == b[i].name && a[i].dtype == b[i].dtype &&
                             a[i].shape.size() == b[i].shape.size() &&
                             std::equal(a[i].shape.begin() + (a[i].shape.empty() ? 0 : 1), a[i].shape.end(),
                                        b[i].shape.begin() + (b[i].shape.empty() ? 0 : 1));
    if (!is_same_row) throw_different(what, a[i], b[i]);
  }
}

// Returns whether the input has a row for each one of the batch, in every program.
bool find_rows(std::span<const BatchProgram> programs, const std::vector<int64_t>& batches, size_t input) {
  size_t count = 0;
  for (size_t i = 0; i < programs.size(); ++i) {
    if (has_batch(programs[i].inputs[input], batches[i])) ++count;
  }
  if (count == programs.size()) return true;
  for (const BatchProgram& program : programs) {
    if (program.inputs[input].shape != programs[0].inputs[input].shape)
      throw_different("input", programs[0].inputs[input], program.inputs[input]);
  }
  return false;
}

Port port_of_row(const TensorSpec& spec, bool any_rows) {
  if (any_rows) return {.spec = {.name = spec.name, .dtype = {}, .shape = {}}, .is_any = true};
  return {.spec = row_of(spec)};
}

}  // namespace

BatchPorts batch_ports(std::span<const BatchProgram> programs, bool any_rows) {
  if (programs.empty()) throw_user_error("a stage that works on batches needs a program");
  BatchPorts ports;
  for (const BatchProgram& program : programs) {
    const int64_t batch = batch_of(program);
    check_alike("input", programs[0].inputs, program.inputs);
    check_alike("output", programs[0].outputs, program.outputs);
    if (std::find(ports.batches.begin(), ports.batches.end(), batch) != ports.batches.end())
      throw_user_error("two programs of the stage have the batch {}", batch);
    ports.batches.push_back(batch);
  }
  for (size_t i = 0; i < programs[0].inputs.size(); ++i) {
    const TensorSpec& spec = programs[0].inputs[i];
    ports.has_rows.push_back(find_rows(programs, ports.batches, i));
    ports.inputs.push_back(ports.has_rows[i] ? port_of_row(spec, any_rows) : Port{.spec = spec});
  }
  if (std::find(ports.has_rows.begin(), ports.has_rows.end(), true) == ports.has_rows.end())
    throw_user_error("no input of the program has its batch, {}, as first dimension", ports.batches[0]);
  for (const TensorSpec& spec : programs[0].outputs) ports.outputs.push_back(port_of_row(spec, any_rows));
  return ports;
}

}  // namespace headrace::executors::pipeline
