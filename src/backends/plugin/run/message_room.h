// Room for the sentence that a plugin writes when it refuses or fails.
#pragma once

#include <headrace/backend_abi.h>

#include <array>
#include <string>

#include "base/utf8.h"

namespace headrace::backends::plugin {

class MessageRoom {
 public:
  static constexpr size_t kBytes = 1024;  // with the one that ends it

  const hr_message* view() const { return &view_; }
  // Returns the sentence, or what stands for it where the plugin wrote none.
  std::string text() {
    text_.back() = 0;
    return text_[0] == 0 ? "it does not say why" : as_utf8(text_.data());
  }

  MessageRoom() = default;
  MessageRoom(const MessageRoom&) = delete;
  MessageRoom& operator=(const MessageRoom&) = delete;

 private:
  std::array<char, kBytes> text_{};
  hr_message view_{.data = text_.data(), .size = text_.size()};
};

}  // namespace headrace::backends::plugin
