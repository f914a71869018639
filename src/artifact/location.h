// Location: the place where memory lies, as the text KIND:ID[/MEMORY]: cpu:0, cuda:1, cuda:1/pinned.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tensor/device.h"

namespace headrace::artifact {

struct Location {
  Device device = {};
  std::string memory_kind = {};  // a name that the device's backend gives; empty: the device's usual memory
  bool operator==(const Location&) const = default;
};

std::string to_string(const Location& location);
// Returns nothing when the text has another form or names an unknown kind of device.
std::optional<Location> parse_location(std::string_view text);

}  // namespace headrace::artifact
