#include "artifact/location.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "tensor/device_kind.h"

namespace headrace::artifact {

std::string to_string(const Location& location) {
  const std::span<const DeviceKind> kinds = device_kinds();
  const auto kind =
      std::find_if(kinds.begin(), kinds.end(), [&](const DeviceKind& one) { return one.type == location.device.type; });
  const std::string device =
      kind == kinds.end() ? fmt::format("type{}", location.device.type) : std::string(kind->name);
  return fmt::format("{}:{}{}{}", device, location.device.id, location.memory_kind.empty() ? "" : "/",
                     location.memory_kind);
}

std::optional<Location> parse_location(std::string_view text) {
  Location location;
  if (const size_t slash = text.find('/'); slash != std::string_view::npos) {
    location.memory_kind = text.substr(slash + 1);
    if (location.memory_kind.empty()) return std::nullopt;
    text = text.substr(0, slash);
  }
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view name = text.substr(0, colon), id = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), location.device.id);
  if (error != std::errc() || end != id.data() + id.size() || location.device.id < 0) return std::nullopt;
  for (const DeviceKind& kind : device_kinds()) {
    if (kind.name != name) continue;
    location.device.type = kind.type;
    return location;
  }
  return std::nullopt;
}

}  // namespace headrace::artifact
