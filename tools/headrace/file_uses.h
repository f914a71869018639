// The files that a verb reads and writes, for a check before its work that it overwrites none of them.
#pragma once

#include <string>
#include <vector>

namespace headrace::tools {

class FileUses {
 public:
  // Adds files that are read; empty paths are ignored. Messages say that `what`, such as "the model", is read from
  // them.
  void add_inputs(const std::string& what, const std::vector<std::string>& paths);
  // Adds a file that `option` writes; an empty path is ignored.
  void add_output(const std::string& option, const std::string& path);

  // Returns the files that are read.
  std::vector<std::string> inputs() const;

  // Throws UserError for a file that is read and written, and UsageError for one that is written twice, also under
  // different names. Pipes and devices may have several uses.
  void check() const;

 private:
  struct Use {
    std::string by;  // the name of the data that is read from the file, or the option that writes it
    std::string path;
  };
  std::vector<Use> inputs_, outputs_;
};

}  // namespace headrace::tools
