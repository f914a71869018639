// Tables for people: columns of one width, numbers with units.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headrace::plan {

// Returns the rows as lines whose columns line up, two spaces apart. The first row is the head. The first `num_left`
// columns are aligned to the left, the others to the right. No line ends in spaces.
std::string format_table(const std::vector<std::vector<std::string>>& rows, size_t num_left);

// Returns a time with three digits after the point, such as "1.250 ms"; below a microsecond "999 ns".
std::string format_time(int64_t time_ns);

// Returns a size with one digit after the point, such as "1.5 MB" (2^20 bytes); below 1 kB "1023 B".
std::string format_bytes(int64_t size_bytes);

}  // namespace headrace::plan
