// A file that appears whole or not at all: written under a temporary name in its folder, then renamed. A symbolic link
// is followed: what it points to is replaced, not the link.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::driver {

// A program may be executed, data not; who may do what else is the umask's to say.
enum class FileKind : uint8_t { kData, kProgram };

class OutputFile {
 public:
  // UserError when the folder is missing or cannot be written to, or `path` is empty, a folder, or something else that
  // is no regular file.
  explicit OutputFile(std::string path, FileKind kind = FileKind::kData);
  // Removes what was not committed.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;

  int descriptor() const { return descriptor_; }
  // The file that `path` names, behind all symbolic links.
  const std::string& target() const { return target_; }
  // Gives the file its name. UserError when the operating system says no.
  void commit();

 private:
  friend void commit_both(OutputFile& first, OutputFile& last);

  std::string next_name() const;
  void open_named(mode_t mode);
  // A rename needs a name to begin with. False, with errno, when the operating system says no.
  bool give_temporary_name();
  // Renames the file that commit() will replace. Its name then; empty: there is none.
  std::string set_aside() const;

  std::string path_;    // as given
  std::string target_;  // what it names
  std::string temporary_;
  int descriptor_ = -1;
};

// Gives both files their names, `first` before `last`. When the operating system says no: a UserError, and what they
// would have replaced is there as before. Who reads between the two sees the new `first` and the old `last`.
void commit_both(OutputFile& first, OutputFile& last);

// UserError when `path` names one of the files that `inputs` name, under whatever name: it would be overwritten.
// `what` says in messages who reads them: "the model".
void check_no_input(const std::string& path, const std::vector<std::string>& inputs, std::string_view what);

// Writes `text` as such a file; to a pipe or a character device, such as /dev/null, directly.
void write_text(const std::string& path, std::string_view text);

}  // namespace headrace::driver
