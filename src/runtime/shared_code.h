// Mapping a verified shared library by its descriptor.
#pragma once

#include <string>

#include "base/expected.h"
#include "base/descriptor.h"

namespace headrace::runtime {

// The code of one file, mapped by the dynamic linker. Openings of the same file (device and inode) share one mapping
// and one descriptor; it goes with the last of them.
class SharedCode {
 public:
  SharedCode() = default;
  SharedCode(SharedCode&& other) noexcept;
  SharedCode& operator=(SharedCode&& other) noexcept;
  ~SharedCode();

  // Maps the file behind `descriptor`, whose bytes were verified. Refuses with NOT_AN_ARTIFACT or SYSTEM; `name` is for
  // messages.
  static Expected<SharedCode> map(Descriptor descriptor, const std::string& name);

  // Address of an exported symbol; nullptr when there is none.
  void* symbol(const char* name) const;
  // The file, for reading.
  int descriptor() const;
  // What the addresses in the file are relative to.
  std::byte* load_address() const;

 private:
  struct Mapping;
  struct Table;
  static Table& table();

  Mapping* mapping_ = nullptr;
};

}  // namespace headrace::runtime
