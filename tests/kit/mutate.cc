#include "kit/mutate.h"

#include <algorithm>
#include <array>

namespace headrace::kit {

namespace {

size_t place(const std::string& bytes, Random& random) {
  size_t limit = random.chance(0.5F) ? std::min<size_t>(bytes.size(), 512) : bytes.size();
  return random.index(limit);
}

size_t block_length(const std::string& bytes, size_t begin, Random& random) {
  return std::min(bytes.size() - begin, 1 + random.index(32));
}

void mutate_once(std::string& bytes, Random& random) {
  constexpr std::array<unsigned char, 6> kEdges = {0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff};
  size_t at = place(bytes, random);
  size_t length = block_length(bytes, at, random);
  switch (random.integer(0, 6)) {
    case 0:
    case 1:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.integer(0, 7)));
      return;
    case 2:
      bytes[at] = static_cast<char>(random.chance(0.5F) ? kEdges[random.index(kEdges.size())] : random.integer(0, 255));
      return;
    case 3:
      bytes.erase(at, length);
      return;
    case 4:
      bytes.insert(at, bytes.substr(at, length));
      return;
    case 5: {
      size_t src = place(bytes, random);
      std::string block = bytes.substr(src, std::min(length, bytes.size() - src));
      bytes.replace(at, std::min(block.size(), bytes.size() - at), block);
      return;
    }
    default:
      bytes.resize(at);
  }
}

}  // namespace

std::string mutate(std::string_view valid, Random& random) {
  std::string bytes(valid);
  for (int64_t times = random.integer(1, 4); times > 0 && !bytes.empty(); --times) mutate_once(bytes, random);
  return bytes;
}

}  // namespace headrace::kit
