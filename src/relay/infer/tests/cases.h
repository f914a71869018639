// Programs and what inference says of their @main. Expectations are written by hand.
#pragma once

#include <gtest/gtest.h>

#include "ops/all_ops.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"

namespace headrace::relay {

struct InferCase {
  std::string_view program;   // after the version line and kTypesOfCases; its @main is asked for
  std::string_view expected;  // the type of @main, or a part of the error
};

inline constexpr std::string_view kTypesOfCases = R"(
type List[A] { Cons(A, List[A]), Nil, }
type Option[A] { Some(A), None, }
type Nat { Z, S(Nat), }
type Tree[A] { Rose(A, List[Tree[A]]), }
type Either[A, B] { Left(A), Right(B), }
)";

inline std::string type_of_main(std::string_view program) {
  ops::register_all_ops();
  const std::string text = fmt::format("#[version = \"0.0.5\"]{}{}", kTypesOfCases, program);
  try {
    const IRModule module = infer_type(parse_module(text, "case"));
    return to_string(module->lookup("main")->checked_type());
  } catch (const UserError& error) {
    return fmt::format("error: {}", error.what());
  }
}

inline void expect_typed(const InferCase& c) {
  const std::string found = type_of_main(c.program);
  EXPECT_EQ(found, c.expected) << c.program;
}

inline void expect_refused(const InferCase& c) {
  const std::string found = type_of_main(c.program);
  EXPECT_TRUE(found.starts_with("error: ") && found.find(c.expected) != std::string::npos)
      << c.program << "\nexpected " << c.expected << "\nfound    " << found;
}

}  // namespace headrace::relay
