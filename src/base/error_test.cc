// Tests how errors show values from users.
#include "base/error.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "base/frames.h"

namespace headrace {
namespace {

// "0, 1, 2" for 3.
std::string numbers(int count) {
  std::vector<int> list(static_cast<size_t>(count));
  std::iota(list.begin(), list.end(), 0);
  return fmt::format("{}", fmt::join(list, ", "));
}

TEST(Error, LongListsAreCut) {
  const UserError error(fmt::format("newshape ({}) of Tensor[({}), float32]", numbers(100'000), numbers(3)),
                        {.op = "reshape", .place = "m.relay:2:3"});
  const std::string message = "newshape (0, 1, 2, 3, 4, 5, 6, 7, ... (100000 in all)) of Tensor[(0, 1, 2), float32]";
  EXPECT_EQ(error.message(), message);
  EXPECT_EQ(std::string(error.what()), message + "\n  at: reshape\n  in: m.relay:2:3");
  EXPECT_EQ(UserError(error.message()).message(), message) << "an error that is wrapped in another";
}

TEST(Error, APlaceThatTheMessageShowsIsNotShownAgain) {
  const UserError first("a", {"add", "m.relay:2:1"}), second("b", {"", "m.relay:2:11"});
  const std::string list = fmt::format("2 type errors:\n  {}\n  {}", first.what(), second.what());
  for (const ErrorPlace& place : {first.where(), second.where(), ErrorPlace{}}) {
    const UserError error(list, place);
    EXPECT_EQ(std::string(error.what()), list);
    EXPECT_EQ(error.where().place, place.place);
  }
  EXPECT_EQ(std::string(UserError(second.what(), {"", "m.relay:2:1"}).what()),
            "b\n  in: m.relay:2:11\n  in: m.relay:2:1")
      << "another place, though one begins as the other";
}

TEST(Error, ListsInListsAreCut) {
  std::string pairs;
  for (int i = 0; i < 200; ++i) pairs += fmt::format("{}[{}, ({})]", i == 0 ? "" : ", ", i, numbers(20));
  const std::string message = UserError("[" + pairs + "]").message();
  EXPECT_TRUE(message.starts_with("[[0, (0, 1, 2, 3, 4, 5, 6, 7, ... (20 in all))], [1, (0, ")) << message;
  EXPECT_TRUE(message.ends_with("... (20 in all))], ... (200 in all)]")) << message;
}

TEST(Error, LongWordsAreCut) {
  const std::string as(100'000, 'a');
  EXPECT_EQ(UserError("equation '" + as + "' names none").message(),
            "equation '" + as.substr(0, 59) + "... (100002 bytes) names none");
  std::string euros;
  for (int i = 0; i < 1000; ++i) euros += "€";  // three bytes each
  EXPECT_EQ(UserError("a" + euros + "\n").message(), "a" + euros.substr(0, 57) + "... (3001 bytes)\n");
}

TEST(Error, ADefectShowsTheFunctionsItIsThrownIn) {
  try {
    HEADRACE_CHECK(numbers(1).empty(), "seven is {}", 8);
    FAIL() << "no error";
  } catch (const InternalError& error) {
    const std::string frames(frames_of(error));
    EXPECT_TRUE(frames.starts_with("C++ frames, the innermost last:\n  ")) << frames;
    EXPECT_NE(frames.find("\n  base_test+0x"), std::string::npos) << frames;
    EXPECT_NE(frames.find("headrace::detail::check_failed("), std::string::npos) << frames;
    EXPECT_EQ(error.what(), error.message() + "\n" + frames);
    EXPECT_EQ(error.message().find("C++ frames"), std::string::npos);
    // An error made of another error's text shows the frames once.
    EXPECT_EQ(std::string(InternalError(error.what()).what()), error.what());
  }
  EXPECT_EQ(frames_of(UserError("seven is eight")), "");
}

TEST(Error, OtherTextStaysAsItIs) {
  std::string prose;
  for (int i = 0; i < 300; ++i) prose += "word ";
  for (const std::string& text :
       {"(" + numbers(100) + ")",                                // no more than a screen shows at once
        prose + " (" + numbers(16) + ")", prose + numbers(100),  // in no brackets
        prose + "(" + numbers(100), prose + numbers(100) + ")", prose + "(" + numbers(100) + "]",
        prose + "\n(" + numbers(100) + ")\n ^"})  // a line of a program and a mark below
    EXPECT_EQ(UserError(text).message(), text);
}

}  // namespace
}  // namespace headrace
