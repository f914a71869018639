// Mapping a verified shared library by its descriptor.
#pragma once

#include <string>

#include "artifact/trailer.h"
#include "base/expected.h"
#include "base/descriptor.h"

namespace headrace::runtime {

// Bytes of a shared library that only readers touch: where they lie in the file and, relative to the load address, in
// memory.
struct ConstantBytes {
  int64_t offset = 0;
  uint64_t address = 0;
  int64_t nbytes = 0;
};

// The code of one file or part of a file, mapped by the dynamic linker. Openings of one with one content share a
// mapping, which is unmapped with the last of them.
//
// Everything but the constant bytes is a copy in memory, of a few hundred kilobytes: the dynamic linker keeps pointers
// in the pages of a library, and overwriting the file in place would destroy them. Constant bytes past kCopiedBytes are
// mapped from the file itself and shared by all processes. Overwriting the file changes them, and shortening it ends
// the processes that read them. Replacing the file by a rename is safe. With HEADRACE_PERF in the environment a whole
// file is mapped itself, so that perf and debuggers find its symbols; nothing may write to it then.
class SharedCode {
 public:
  static constexpr int64_t kCopiedBytes = int64_t{1} << 20;

  SharedCode() = default;
  SharedCode(SharedCode&& other) noexcept;
  SharedCode& operator=(SharedCode&& other) noexcept;
  ~SharedCode();

  // Maps the file behind `descriptor`, or `nbytes` of it from `begin` on, whose bytes were verified; `constants` are
  // relative to `begin`. Refuses with NOT_AN_ARTIFACT or SYSTEM; `name` is for messages.
  static Expected<SharedCode> map(Descriptor descriptor, int64_t begin, int64_t nbytes, const ConstantBytes& constants,
                                  const std::string& name);

  // Returns the address of an exported symbol; nullptr when there is none.
  void* symbol(const char* name) const;
  // Returns the file (a part is a file of its own), for reading; its constant bytes may be zeros.
  int descriptor() const;
  // Returns the address that the addresses in the file are relative to.
  std::byte* load_address() const;

 private:
  struct Mapping;
  struct Table;
  static Table& table();
  static Expected<Mapping> load(const artifact::FilePart& source, const ConstantBytes& constants,
                                const std::string& name);

  Mapping* mapping_ = nullptr;
};

}  // namespace headrace::runtime
