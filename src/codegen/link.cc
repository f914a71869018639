// One link: objects, data sections and the list of exports become one shared object.
#include <algorithm>
#include <bit>
#include <string_view>

#include "base/error.h"
#include "codegen/c_library.h"
#include "codegen/elf_image.h"
#include "codegen/native.h"
#include "codegen/native_plugin.h"
#include "codegen/object_file.h"

namespace headrace::codegen {

namespace {

// The libraries to link against are made here from the names of the functions that generated code may call: no library
// of the compiling machine is read, so the bytes do not depend on it, and references carry no symbol version.
//
// Functions of libm for double that no intrinsic calls: LLVM makes calls of them from instructions of its own, and
// objects of backends may call them.
constexpr std::string_view kMathFunctions[] = {"atan2",     "cbrt",      "erfc",      "exp10", "exp2",
                                               "expm1",     "fmax",      "fmin",      "fmod",  "ldexp",
                                               "nearbyint", "remainder", "roundeven", "sincos"};
constexpr std::string_view kCFunctions[] = {"aligned_alloc", "free",   "malloc",   "memcmp", "memcpy",
                                            "memmove",       "memset", "snprintf", "strlen", "vsnprintf"};

// Returns the functions of libm for double and for float, in alphabetical order.
std::vector<std::string> math_functions() {
  std::vector<std::string> names;
  const auto add = [&](std::string_view name) {
    names.emplace_back(name);
    names.push_back(std::string(name) + "f");
  };
  for (const std::string_view name : kMathFunctions) add(name);
  for (const std::string_view name : functions_of_intrinsics()) add(name);
  std::sort(names.begin(), names.end());
  return names;
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '$';
  });
}

void check_sections(std::span<const DataSection> sections) {
  for (const DataSection& it : sections) {
    HEADRACE_CHECK(is_name(it.name) && it.name[0] == '.', "bad name of a data section: '{}'", it.name);
    HEADRACE_CHECK(it.symbol.empty() || is_name(it.symbol), "bad symbol of data section '{}'", it.name);
    HEADRACE_CHECK(std::has_single_bit(it.alignment) && it.alignment <= 4096, "data section '{}' is aligned to {}",
                   it.name, it.alignment);
    const auto same_name = [&](const DataSection& other) { return other.name == it.name; };
    HEADRACE_CHECK(std::count_if(sections.begin(), sections.end(), same_name) == 1, "two data sections are named '{}'",
                   it.name);
    uint64_t end = 0;
    for (const DataSection::Chunk& chunk : it.chunks) {
      HEADRACE_CHECK(
          chunk.offset >= end && chunk.offset <= it.size_bytes && chunk.bytes.size() <= it.size_bytes - chunk.offset,
          "chunk at {} of data section '{}' overlaps or lies outside", chunk.offset, it.name);
      end = chunk.offset + chunk.bytes.size();
    }
  }
}

std::string module_of_assembly(const NativeTarget& target, const std::vector<std::string>& lines) {
  std::string text = fmt::format("target triple = \"{}\"\n", target.triple);
  for (const std::string& line : lines) text += fmt::format("module asm \"{}\"\n", line);
  return text;
}

// Makes an object with the data sections' sizes and symbols, but without their bytes. The linker would drop an empty
// section.
std::string make_data_object(const NativePlugin& plugin, const NativeTarget& target,
                             std::span<const DataSection> sections) {
  std::vector<std::string> lines;
  for (const DataSection& it : sections) {
    lines.push_back(fmt::format(".section {},\\22a\\22,@nobits", it.name));
    lines.push_back(fmt::format(".balign {}", it.alignment));
    if (!it.symbol.empty()) {
      lines.push_back(fmt::format(".globl {0}", it.symbol));
      lines.push_back(fmt::format(".type {0},@object", it.symbol));
      lines.push_back(fmt::format(".size {0},{1}", it.symbol, it.size_bytes));
      lines.push_back(fmt::format("{0}:", it.symbol));
    }
    lines.push_back(fmt::format(".zero {}", linked_bytes(it)));
  }
  return plugin.compile_llvm(module_of_assembly(target, lines), target, CodeForm::kObject, 0);
}

// Makes a shared object that defines `functions` and is never run: it only tells the linker which library provides
// them.
ObjectCode make_stub_library(const NativePlugin& plugin, const NativeTarget& target, const std::string& soname,
                             std::span<const std::string> functions) {
  std::vector<std::string> lines = {".text"};
  for (const std::string& name : functions) {
    lines.push_back(fmt::format(".globl {}", name));
    lines.push_back(fmt::format(".type {},@function", name));
    lines.push_back(fmt::format("{}:", name));
  }
  const ObjectCode object{soname, plugin.compile_llvm(module_of_assembly(target, lines), target, CodeForm::kObject, 0)};
  const std::vector<std::string> arguments = {"-shared", "-soname", soname, "--hash-style=gnu", "--build-id=none"};
  return {soname,
          plugin.link(
              {.objects = {&object, 1}, .libraries = {}, .arguments = arguments, .script = {}, .version_script = {}})};
}

// Sections in a fixed order and segments by right: read, execute, protect after relocation, write, and the data.
std::string make_script(std::span<const DataSection> sections) {
  std::string data;
  for (const DataSection& it : sections) data += fmt::format("  {0} : {{ KEEP(*({0})) }} :data\n", it.name);
  return fmt::format(
      R"(PHDRS {{
  ro PT_LOAD FILEHDR PHDRS FLAGS(4);
  code PT_LOAD FLAGS(5);
  relro PT_LOAD FLAGS(6);
  rw PT_LOAD FLAGS(6);
{0}  dynamic PT_DYNAMIC FLAGS(6);
  protect PT_GNU_RELRO FLAGS(4);
  stack PT_GNU_STACK FLAGS(6);
}}
SECTIONS {{
  . = SIZEOF_HEADERS;
  .dynsym : {{ *(.dynsym) }} :ro
  .gnu.version : {{ *(.gnu.version) }} :ro
  .gnu.hash : {{ *(.gnu.hash) }} :ro
  .dynstr : {{ *(.dynstr) }} :ro
  .rela.dyn : {{ *(.rela.dyn) }} :ro
  .rela.plt : {{ *(.rela.plt) }} :ro
  .rodata : {{ *(.rodata .rodata.*) }} :ro
  .eh_frame : {{ *(.eh_frame) }} :ro
  . = ALIGN(CONSTANT(MAXPAGESIZE));
  .text : {{ *(.text .text.*) }} :code
  .plt : {{ *(.plt) }} :code
  . = ALIGN(CONSTANT(MAXPAGESIZE));
  .data.rel.ro : {{ *(.data.rel.ro .data.rel.ro.*) }} :relro :protect
  .dynamic : {{ *(.dynamic) }} :relro :protect :dynamic
  .got : {{ *(.got .got.plt) }} :relro :protect
  . = ALIGN(CONSTANT(MAXPAGESIZE));
  .data : {{ *(.data .data.*) }} :rw
  .bss : {{ *(.bss .bss.* COMMON) }} :rw
  . = ALIGN(CONSTANT(MAXPAGESIZE));
{1}  /DISCARD/ : {{ *(.comment .note.GNU-stack) }}
}}
)",
      sections.empty() ? "" : "  data PT_LOAD FLAGS(4);\n", data);
}

std::vector<ObjectCode> stub_libraries(const NativePlugin& plugin, const NativeTarget& target) {
  const std::vector<std::string> c_functions(std::begin(kCFunctions), std::end(kCFunctions));
  return {make_stub_library(plugin, target, "libm.so.6", math_functions()),
          make_stub_library(plugin, target, "libc.so.6", c_functions)};
}

std::vector<std::string> shared_arguments(const std::string& soname) {
  return {
      "-shared", "-soname",     soname, "--hash-style=gnu", "--build-id=none", "-z", "now", "-z", "relro", "-z", "defs",
      "-z",      "noexecstack", "-O1"};
}

std::string make_version_script(std::span<const std::string> exports) {
  std::string text = "{\n";
  if (!exports.empty()) text += "  global:\n";
  for (const std::string& name : exports) {
    HEADRACE_CHECK(is_name(name), "bad name of an exported symbol: '{}'", name);
    text += fmt::format("    {};\n", name);
  }
  return text + "  local: *;\n};\n";
}

std::string link_shared(const NativePlugin& plugin, const LinkRequest& request, std::span<const ObjectCode> objects) {
  const std::vector<ObjectCode> libraries = stub_libraries(plugin, request.target);
  const std::vector<std::string> arguments = shared_arguments(request.soname);
  return plugin.link({.objects = objects,
                      .libraries = libraries,
                      .arguments = arguments,
                      .script = make_script(request.sections),
                      .version_script = make_version_script(request.exports)});
}

std::string link_relocatable(const NativePlugin& plugin, std::span<const ObjectCode> objects) {
  const std::vector<std::string> arguments = {"-r"};
  return plugin.link({.objects = objects, .libraries = {}, .arguments = arguments, .script = {}, .version_script = {}});
}

}  // namespace

std::string NativeCompiler::link_object(const ObjectCode& object, const NativeTarget& target) const {
  check_object(object, target);
  const std::vector<ObjectCode> libraries = stub_libraries(*plugin_, target);
  const std::vector<std::string> arguments = shared_arguments(LinkRequest{}.soname);
  return plugin_->link(
      {.objects = {&object, 1}, .libraries = libraries, .arguments = arguments, .script = {}, .version_script = {}});
}

void NativeCompiler::link(const LinkRequest& request, int output_fd) const {
  check_sections(request.sections);
  for (const ObjectCode& object : request.objects) check_object(object, request.target);
  std::vector<ObjectCode> objects(request.objects.begin(), request.objects.end());
  if (!request.sections.empty()) {
    objects.push_back({"data sections", make_data_object(*plugin_, request.target, request.sections)});
  }
  std::string image = request.form == LinkForm::kRelocatable ? link_relocatable(*plugin_, objects)
                                                             : link_shared(*plugin_, request, objects);
  const DataLayout layout = place_data(image, request.sections);
  write_image(image, request.sections, layout, output_fd, request.output);
}

}  // namespace headrace::codegen
