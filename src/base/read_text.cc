#include "base/read_text.h"

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/utf8.h"

namespace headrace {

std::string read_text(const std::string& path, std::string_view what) {
  const auto file = MappedFile::open(path, what);
  std::string text(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  if (!is_utf8(text) || text.find('\0') != std::string::npos) throw_user_error("the {} '{}' is not text", what, path);
  return text;
}

std::string read_standard_input() {
  std::string text;
  char buffer[1 << 16];
  for (size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, stdin)) > 0;) text.append(buffer, n);
  if (std::ferror(stdin) != 0)
    throw_user_error("cannot read the standard input: {}", std::generic_category().message(errno));
  if (!is_utf8(text) || text.find('\0') != std::string::npos) throw_user_error("the standard input is not text");
  return text;
}

}  // namespace headrace
