// Attributes of calls as plugins see them: hr_attr of headrace/backend_abi.h. Inner header of this room.
#pragma once

#include <headrace/backend_abi.h>

#include <deque>
#include <string>
#include <vector>

#include "ir/expr.h"

namespace headrace::backends::plugin {

// The attributes of one call, or the options of one compile, with the memory that their views point to.
class AttrList {
 public:
  AttrList() = default;
  explicit AttrList(const Attrs& attrs);  // null attributes are an empty list
  explicit AttrList(const Map<std::string, Value>& options);

  const std::vector<hr_attr>& all() const { return views_; }
  // Returns the attribute of that name; an empty struct when there is none.
  hr_attr find(std::string_view name) const;

 private:
  void add(const std::string& name, const Value& value);
  void add_list(hr_attr& view, const std::vector<Value>& items);
  void set_texts(hr_attr& view, std::vector<std::string> texts);

  // Elements of a deque do not move.
  std::deque<std::string> texts_;
  std::deque<std::vector<int64_t>> integers_;
  std::deque<std::vector<double>> reals_;
  std::deque<std::vector<const char*>> text_lists_;
  std::vector<hr_attr> views_;
};

}  // namespace headrace::backends::plugin
