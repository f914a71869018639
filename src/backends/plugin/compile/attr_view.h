// Attributes of calls as plugins see them: hr_attr of headrace/backend_abi.h. Inner header of this room.
#pragma once

#include <headrace/backend_abi.h>

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/expr.h"

namespace headrace::backends::plugin {

// The attributes of one call, or the options of one compile, with the memory that their views point to.
class AttrList {
 public:
  AttrList() = default;
  explicit AttrList(const Attrs& attrs);  // null attributes are an empty list
  // Options have all forms that hr_options names, because the command line gives texts and Python gives numbers.
  explicit AttrList(const Map<std::string, Value>& options);

  const std::vector<hr_attr>& all() const { return views_; }
  // Returns the attribute of that name; an empty struct when there is none.
  hr_attr find(std::string_view name) const;
  // Return the number of items of the list at `path` in that attribute, and the value there: 0 and an empty struct
  // where there is none.
  uint64_t num_items(std::string_view name, std::span<const uint64_t> path) const;
  hr_attr item(std::string_view name, std::span<const uint64_t> path) const;

 private:
  // The view of a value. Of a list that is no plain one, also its items.
  struct Tree {
    hr_attr view;
    std::vector<Tree> items = {};
  };

  void add(const std::string& name, const Value& value);
  void add_forms(hr_attr& option, bool is_boolean);
  Tree make_tree(const char* name, const Value& value);
  void add_list(Tree& tree, const std::vector<Value>& items);
  // Returns the value at `path`; its items are left out where it is an item of a plain list.
  std::optional<Tree> find_tree(std::string_view name, std::span<const uint64_t> path) const;
  void set_texts(hr_attr& view, std::vector<std::string> texts);

  // Elements of a deque do not move.
  std::deque<std::string> texts_;
  std::deque<std::vector<int64_t>> integers_;
  std::deque<std::vector<double>> reals_;
  std::deque<std::vector<const char*>> text_lists_;
  std::vector<hr_attr> views_;
  std::vector<Tree> trees_;  // one for each view
};

}  // namespace headrace::backends::plugin
