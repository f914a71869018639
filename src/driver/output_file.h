// A file that appears whole or not at all: written under a temporary name in its folder, then renamed.
#pragma once

#include <string>
#include <string_view>

namespace headrace::driver {

class OutputFile {
 public:
  // UserError when the folder is missing or cannot be written to, or `path` is a folder.
  explicit OutputFile(std::string path);
  // Removes what was not committed.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;

  int descriptor() const { return descriptor_; }
  // Gives the file its name. UserError when the operating system says no.
  void commit();

 private:
  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
};

// Writes `text` as such a file.
void write_text(const std::string& path, std::string_view text);

}  // namespace headrace::driver
