#include "base/frames.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "base/error.h"

namespace headrace {

namespace {

constexpr std::string_view kHeading = "C++ frames, the innermost last:";
// Frames nearer to the error than this are shown, and so much of a function's name.
constexpr int kMostFrames = 64;
constexpr size_t kMostName = 200;

std::string demangled(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(symbol, nullptr, nullptr, &status),
                                                         &std::free);
  const std::string_view text = status == 0 ? name.get() : symbol;
  return text.size() <= kMostName ? std::string(text) : fmt::format("{}...", text.substr(0, kMostName));
}

constexpr std::string_view kPython = "(Python)";

std::string frame_text(void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return fmt::format("0x{:x}", at);
  const std::string_view path = info.dli_fname, image = path.substr(path.rfind('/') + 1);
  // Python reports its own frames.
  if (image.starts_with("python") || image.starts_with("libpython")) return std::string(kPython);
  const std::string place = fmt::format("{}+0x{:x}", image, at - reinterpret_cast<uintptr_t>(info.dli_fbase));
  if (info.dli_sname == nullptr) return place;
  return fmt::format("{} {}+0x{:x}", place, demangled(info.dli_sname),
                     at - reinterpret_cast<uintptr_t>(info.dli_saddr));
}

}  // namespace

[[gnu::noinline]] std::string calling_frames(int skipped) {
  void* addresses[kMostFrames];
  const int count = backtrace(addresses, kMostFrames);
  std::string text(kHeading), before;
  // This function is the innermost.
  for (int i = count; i-- > skipped + 1;) {
    const std::string frame = frame_text(addresses[i]);
    if (frame != kPython || before != kPython) text += fmt::format("\n  {}", frame);
    before = frame;
  }
  return text;
}

std::string_view frames_of(const Error& error) {
  const std::string_view text = error.what();
  const size_t at = text.rfind(kHeading);
  return at == std::string_view::npos ? std::string_view() : text.substr(at);
}

}  // namespace headrace
