// Owns a file descriptor and closes it.
#pragma once

#include <string>
#include <utility>

#include "base/expected.h"

namespace headrace {

class Descriptor {
 public:
  // Takes ownership of the result of a system call; a negative number means no descriptor.
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() { close(); }

  // Opens a file for reading, without waiting for a writer of a pipe, and closed in child processes. Refuses with
  // NOT_FOUND when there is no such file, and with SYSTEM for any other failure.
  static Expected<Descriptor> open(const std::string& path);
  // Opens a file for reading; a failure gives a negative number with errno set instead of an error.
  static Descriptor try_open(const std::string& path);

  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }
  void close();

 private:
  int number_;
};

}  // namespace headrace
