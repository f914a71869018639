// Message: a sentence in memory of fixed size, for code that must not allocate.
#pragma once

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace headrace::executors {

// A longer sentence is cut between two characters of UTF-8.
class Message {
 public:
  template <typename... Args>
  void write(fmt::format_string<Args...> format, Args&&... args) noexcept {
    try {
      const auto end = fmt::format_to_n(text_.data(), text_.size() - 1, format, std::forward<Args>(args)...);
      finish(std::min(end.size, text_.size() - 1));
    } catch (...) {  // a formatter of ours may need memory
      clear();
    }
  }
  void clear() noexcept { text_[0] = '\0'; }

  // The buffer that kernels write to; call end() after they did.
  char* data() noexcept { return text_.data(); }
  size_t size() const noexcept { return text_.size(); }
  // Ends the text where a kernel filled the whole buffer.
  void end() noexcept { text_.back() = '\0'; }

  std::string_view view() const noexcept { return text_.data(); }

 private:
  void finish(size_t length) noexcept {
    const bool is_cut = length == text_.size() - 1;
    while (is_cut && length > 0 && (static_cast<unsigned char>(text_[length - 1]) & 0xC0U) == 0x80U) --length;
    if (is_cut && length > 0 && (static_cast<unsigned char>(text_[length - 1]) & 0x80U) != 0) --length;
    text_[length] = '\0';
  }

  std::array<char, 1024> text_{};
};

}  // namespace headrace::executors
