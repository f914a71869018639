#include "kit/random.h"

namespace headrace::kit {

void Random::fill(std::span<float> values, float mean, float deviation) {
  constexpr float kRootOf3 = 1.7320508F;
  for (float& value : values) value = mean + uniform(-1.0F, 1.0F) * kRootOf3 * deviation;
}

}  // namespace headrace::kit
