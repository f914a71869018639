// Writes files that appear complete or not at all: a file is written under a temporary name in its folder and then
// renamed. Symbolic links are followed: the target is replaced, not the link.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::driver {

// Determines whether the file is executable. The umask restricts its permissions further.
enum class FileKind : uint8_t { kData, kProgram };

class OutputFile {
 public:
  // Opens the temporary file. Throws UserError if the folder is missing or not writable, and if `path` is empty, a
  // folder, or another kind of file that is not regular.
  explicit OutputFile(std::string path, FileKind kind = FileKind::kData);
  // Removes the temporary file if it was not committed.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;

  int descriptor() const { return descriptor_; }
  // Returns the file that `path` names, after following all symbolic links.
  const std::string& target() const { return target_; }
  // Renames the file to its final name. Throws UserError if the operating system reports an error.
  void commit();

 private:
  friend void commit_both(OutputFile& first, OutputFile& last);

  std::string next_name() const;
  void open_named(mode_t mode);
  // Links a file without a name to a temporary one, since only a named file can be renamed. Returns false and sets
  // errno on error.
  bool give_temporary_name();
  // Renames the existing file that commit() will replace. Returns its new name; empty if there is no such file.
  std::string set_aside() const;

  std::string path_;    // as given
  std::string target_;  // with symbolic links followed
  std::string temporary_;
  int descriptor_ = -1;
};

// Commits both files, `first` before `last`. If the operating system reports an error, restores the files that they
// would have replaced and throws UserError. A reader between the two renames sees the new `first` and the old `last`.
void commit_both(OutputFile& first, OutputFile& last);

// Throws UserError if `path` is the same file as one of `inputs`, even under another name, because writing it would
// overwrite the input. `what` names the reader of the inputs in messages: "the model".
void check_no_input(const std::string& path, const std::vector<std::string>& inputs, std::string_view what);

// Returns whether two paths name one file, which need not exist. Pipes and devices count as different files, because
// several texts can be written to them.
bool name_one_file(const std::string& a, const std::string& b);

// Writes `text` to an OutputFile and commits it. Writes directly to pipes and character devices, such as /dev/null.
void write_text(const std::string& path, std::string_view text);

}  // namespace headrace::driver
