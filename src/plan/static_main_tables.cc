#include "plan/static_main_tables.h"

#include <map>
#include <set>

#include "artifact/tensor_extent.h"
#include "base/error.h"
#include "plan/static_main.h"
#include "tensor/strides.h"

// Puts an object file, as the build made it, between the symbols NAME_begin and NAME_end.
#define HEADRACE_EMBED(name, file)                                            \
  extern "C" const char name##_begin[] __attribute__((visibility("hidden"))); \
  extern "C" const char name##_end[] __attribute__((visibility("hidden")));   \
  __asm__(                                                                    \
      ".pushsection .rodata\n"                                                \
      ".hidden " #name                                                        \
      "_begin\n"                                                              \
      ".globl " #name "_begin\n" #name                                        \
      "_begin:\n"                                                             \
      ".incbin \"" file                                                       \
      "\"\n"                                                                  \
      ".hidden " #name                                                        \
      "_end\n"                                                                \
      ".globl " #name "_end\n" #name                                          \
      "_end:\n"                                                               \
      ".popsection\n")

// The build names the objects that it has: that of its own machine, and others where it found a compiler for them.
#ifdef HEADRACE_STATIC_MAIN_X86_64
HEADRACE_EMBED(headrace_static_main_x86_64, HEADRACE_STATIC_MAIN_X86_64);
#endif
#ifdef HEADRACE_STATIC_MAIN_AARCH64
HEADRACE_EMBED(headrace_static_main_aarch64, HEADRACE_STATIC_MAIN_AARCH64);
#endif

namespace headrace::plan {

using artifact::Entry;
using artifact::Place;
using artifact::Program;
using artifact::Step;

static_assert(static_cast<int>(Place::kStorage) == HR_MAIN_ARENA && static_cast<int>(Place::kWeight) == HR_MAIN_WEIGHT);
static_assert(static_cast<int>(Place::kInput) == HR_MAIN_INPUT && static_cast<int>(Place::kOutput) == HR_MAIN_OUTPUT);

namespace {

constexpr const char* kEntryType = "{ ptr, ptr, i64, i32, i32, i32, i8, i8, i16 }";
constexpr const char* kStepType = "{ ptr, i64, ptr, i32, i32 }";

class Tables {
 public:
  Tables(const Program& program, std::span<const artifact::Weight> weights) : program_(program), weights_(weights) {}

  std::string write(const std::string& triple, const std::string& needs_runtime) {
    text_ = fmt::format("target triple = \"{}\"\n", triple);
    if (!needs_runtime.empty()) {
      text_ += fmt::format("@needs_runtime = private constant [{} x i8] c\"{}\\00\"\n", needs_runtime.size() + 1,
                           escaped(needs_runtime));
      write_program("null", "null", "null", "@needs_runtime");
      return std::move(text_);
    }
    std::string entries, steps;
    for (const Entry& entry : program_.graph.entries) append(entries, entry_text(entry));
    for (const Step& step : program_.graph.steps) append(steps, step_text(step));
    const bool has_weights = !weights_.empty();
    if (has_weights) text_ += fmt::format("@{} = external hidden constant i8\n", kWeightsSymbol);
    text_ +=
        fmt::format("@entries = private constant [{} x {}] [{}]\n", program_.graph.entries.size(), kEntryType, entries);
    text_ += fmt::format("@steps = private constant [{} x {}] [{}]\n", program_.graph.steps.size(), kStepType, steps);
    write_program("@entries", "@steps", has_weights ? fmt::format("@{}", kWeightsSymbol) : "null", "null");
    return std::move(text_);
  }

 private:
  static void append(std::string& list, const std::string& item) { list += (list.empty() ? "" : ",\n  ") + item; }

  // Escapes a string of bytes as LLVM writes it.
  static std::string escaped(const std::string& text) {
    std::string result;
    for (const char c : text) {
      const bool is_plain = c >= ' ' && c <= '~' && c != '"' && c != '\\';
      result += is_plain ? std::string(1, c) : fmt::format("\\{:02X}", static_cast<unsigned char>(c));
    }
    return result;
  }

  void write_program(const std::string& entries, const std::string& steps, const std::string& weights,
                     const std::string& needs_runtime) {
    size_t max_args = 0;
    for (const Step& step : program_.graph.steps) max_args = std::max(max_args, step.args.size());
    text_ += fmt::format(
        "@headrace_program = hidden constant {{ ptr, ptr, ptr, i64, i64, i32, i32, i32, i32, i32, i32, ptr }} "
        "{{ ptr {}, ptr {}, ptr {}, i64 {}, i64 {}, i32 {}, i32 {}, i32 {}, i32 {}, i32 {}, i32 0, ptr {} }}\n",
        entries, steps, weights, artifact::arena_bytes(program_.memory), program_.memory.workspace_bytes,
        program_.inputs.size(), program_.outputs.size(), program_.graph.entries.size(), program_.graph.steps.size(),
        max_args, needs_runtime);
  }

  // Returns the name of a constant array of integers; equal ones are one.
  template <typename T>
  std::string array(const char* type, const std::vector<T>& numbers) {
    std::string items;
    for (const T number : numbers) items += fmt::format("{}{} {}", items.empty() ? "" : ", ", type, number);
    const std::string constant = fmt::format("[{} x {}] [{}]", numbers.size(), type, items);
    const auto [it, is_new] = arrays_.emplace(constant, fmt::format("@array{}", arrays_.size()));
    if (is_new) text_ += fmt::format("{} = private constant {}\n", it->second, constant);
    return it->second;
  }

  std::string entry_text(const Entry& entry) {
    int64_t offset = entry.byte_offset;
    if (entry.place == Place::kStorage) offset += program_.memory.storages[static_cast<size_t>(entry.index)].offset;
    if (entry.place == Place::kWeight) offset += weights_[static_cast<size_t>(entry.index)].offset;
    const bool is_port = entry.place == Place::kInput || entry.place == Place::kOutput;
    const DLDataType dtype = entry.dtype.raw();
    const std::vector<int64_t> strides = entry.strides.empty() ? dense_strides(entry.shape) : entry.strides;
    return fmt::format("{} {{ ptr {}, ptr {}, i64 {}, i32 {}, i32 {}, i32 {}, i8 {}, i8 {}, i16 {} }}", kEntryType,
                       array("i64", entry.shape), array("i64", strides), offset, static_cast<int>(entry.place),
                       is_port ? entry.index : 0, entry.shape.size(), dtype.code, dtype.bits, dtype.lanes);
  }

  std::string step_text(const Step& step) {
    HEADRACE_CHECK(!artifact::needs_runtime(step.action), "the static main cannot run the step");
    std::string kernel = "null";
    int64_t nbytes = 0;
    if (const auto* call = std::get_if<artifact::KernelCall>(&step.action)) {
      kernel = "@" + call->symbol;
      if (declared_.insert(call->symbol).second) text_ += fmt::format("declare i32 {}(ptr, ptr)\n", kernel);
    } else {
      const Entry& source = program_.graph.entries[static_cast<size_t>(step.args[0])];
      nbytes = artifact::tensor_nbytes(source.dtype, source.shape).value();
    }
    return fmt::format("{} {{ ptr {}, i64 {}, ptr {}, i32 {}, i32 0 }}", kStepType, kernel, nbytes,
                       array("i32", step.args), step.args.size());
  }

  const Program& program_;
  std::span<const artifact::Weight> weights_;
  std::string text_;
  std::map<std::string, std::string> arrays_;
  std::set<std::string> declared_;
};

}  // namespace

std::string static_main_tables(const Program& program, std::span<const artifact::Weight> weights,
                               const std::string& triple, const std::string& needs_runtime) {
  return Tables(program, weights).write(triple, needs_runtime);
}

std::string_view static_main_object(std::string_view architecture) {
#ifdef HEADRACE_STATIC_MAIN_X86_64
  if (architecture == "x86_64") return {headrace_static_main_x86_64_begin, headrace_static_main_x86_64_end};
#endif
#ifdef HEADRACE_STATIC_MAIN_AARCH64
  if (architecture == "aarch64") return {headrace_static_main_aarch64_begin, headrace_static_main_aarch64_end};
#endif
  return {};
}

std::vector<std::string_view> static_main_architectures() {
  std::vector<std::string_view> names;
  for (const std::string_view name : {"x86_64", "aarch64"}) {
    if (!static_main_object(name).empty()) names.push_back(name);
  }
  return names;
}

}  // namespace headrace::plan
