// Tests texts that import texts: which files are found, what is taken from them, and the errors when they conflict.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/temporary_name.h"
#include "kit/errors.h"
#include "object/structural_equal.h"
#include "ops/all_ops.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"

namespace headrace::relay {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr const char* kHead = "#[version = \"0.0.5\"]\n";

class ImportedTexts : public testing::Test {
 protected:
  ImportedTexts() {
    ops::register_all_ops();
    std::string name = temporary_name(testing::TempDir() + "headrace_imports_");
    folder_ = mkdtemp(name.data());
  }
  ~ImportedTexts() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << kHead << text;
  }
  std::string path(const std::string& name = "") const { return (folder_ / name).string(); }
  IRModule read(const std::string& text) { return parse_module(kHead + text, "main", {.import_paths = {path()}}); }
  std::string error_of(const std::string& text) {
    return kit::user_error_of([&] { read(text); });
  }

  fs::path folder_;
};

std::vector<std::string> functions_of(const IRModule& module) {
  std::vector<std::string> names;
  for (const auto& [var, function] : module->functions()) names.push_back(var->name_hint);
  return names;
}

TEST_F(ImportedTexts, FilesAreFoundBesideTheImporterAndInTheFoldersGiven) {
  write("a.rly", "import \"more/b.rly\"\ndef @a() { @b() }");
  write("more/b.rly", "import \"c.rly\"\ndef @b() { @c() }");
  write("more/c.rly", "import \"d.rly\"\ndef @c() { @d() }");
  write("d.rly", "def @d() { 1 }");
  const IRModule module = read("import \"a.rly\"\ndef @main() { @a() }");
  EXPECT_THAT(functions_of(module), testing::ElementsAre("d", "c", "b", "a", "main"));
  EXPECT_TRUE(infer_type(module)->lookup("main")->has_checked_type());
  EXPECT_EQ(read(fmt::format("import \"{}\"", path("d.rly")))->functions().size(), 1u) << "by its whole name";
  EXPECT_EQ(module->source_map().size(), 5u);
  EXPECT_EQ(module->lookup("c")->span->source, path("more/c.rly"));
  EXPECT_EQ(module->source_map().at(path("d.rly"))->source, std::string(kHead) + "def @d() { 1 }");
}

TEST_F(ImportedTexts, ATextThatIsImportedTwiceIsReadOnce) {
  write("a.rly", "import \"prelude.rly\"\nimport \"d.rly\"\ndef @a(%x: List[Box]) { @length(%x) }");
  write("b.rly", "import \"prelude.rly\"\nimport \"./d.rly\"\ndef @b() -> List[Box] { Cons(Pack(1), Nil) }");
  write("d.rly", "type Box { Pack(int32) }");
  const IRModule module = read("import \"a.rly\"\nimport \"b.rly\"\nimport \"prelude.rly\"\ndef @main() { @a(@b()) }");
  EXPECT_TRUE(infer_type(module)->lookup("main")->has_checked_type());
  EXPECT_EQ(module->type_definitions().size(), 4u);
}

// An untrusted text cannot read a file outside the folders that its reader offers.
TEST_F(ImportedTexts, FilesOutsideOfTheFoldersAreNotRead) {
  write("in/a.rly", "import \"../b.rly\"");
  write("b.rly", "def @b() { 1 }");
  fs::create_symlink(folder_ / "b.rly", folder_ / "in/link.rly");
  fs::create_directories(folder_ / "in2");
  write("in2/c.rly", "def @c() { 1 }");
  const ParseOptions options{.import_paths = {path("in")}};
  for (const std::string& name : {std::string("a.rly"), std::string("link.rly"), std::string("../b.rly"), path("b.rly"),
                                  std::string("../in2/c.rly")}) {
    const std::string text = fmt::format("{}import \"{}\"", kHead, name);
    EXPECT_THAT(kit::user_error_of([&] { parse_module(text, "main", options); }),
                HasSubstr("lies outside the folders that files are imported from: " + path("in")))
        << name;
    EXPECT_THAT(kit::user_error_of([&] { parse_module(text); }),
                HasSubstr("; a file is imported only from a folder that the reader is given (import_paths)"));
  }
}

TEST_F(ImportedTexts, ErrorsSayWhereAndWhat) {
  write("bad.rly", "def @f() { 1 +  }\ndef @g() { %x }");
  write("outer.rly", "\nimport \"bad.rly\"");
  EXPECT_EQ(error_of("import \"outer.rly\""),
            fmt::format("{0}:2:17: expected an expression, found '}}'\n  def @f() {{ 1 +  }}\n                  ^\n"
                        "{0}:3:12: %x is not defined here\n  def @g() {{ %x }}\n             ^^\n"
                        "imported at {1}:3:8\nimported at main:2:8",
                        path("bad.rly"), path("outer.rly")));
  write("x.rly", "import \"y.rly\"");
  write("y.rly", "import \"x.rly\"");
  EXPECT_THAT(
      error_of("import \"x.rly\""),
      HasSubstr(fmt::format("texts import one another in a circle: {0} -> {1} -> {0}", path("x.rly"), path("y.rly"))));
  EXPECT_THAT(
      error_of("import \"none.rly\""),
      HasSubstr(fmt::format("main:2:8: there is no file 'none.rly' to import in {}, and no such text comes with "
                            "Headrace (there are core.rly, gradient.rly, nat.rly, prelude.rly)",
                            path())));
  EXPECT_THAT(error_of("import \"more\\0.rly\""), HasSubstr("there is no file"));
  fs::create_directories(folder_ / "folder");
  EXPECT_THAT(error_of("import \"folder\""), HasSubstr("main:2:8: "));
  for (size_t i = 0; i < 70; ++i)
    write(fmt::format("n{}.rly", i), i == 69 ? "" : fmt::format("import \"n{}.rly\"", i + 1));
  EXPECT_THAT(error_of("import \"n0.rly\""), HasSubstr("texts import one another more than 64 deep"));
  EXPECT_NO_THROW(read("import \"n10.rly\""));
}

TEST_F(ImportedTexts, ImportsThatClashAreErrorsAtTheSecond) {
  write("a.rly", "def @f() { 1 }\ntype T { A }");
  write("b.rly", "def @f() { 2 }\ntype T { B }");
  EXPECT_THAT(
      error_of("import \"a.rly\"\nimport \"b.rly\""),
      HasSubstr(fmt::format("main:3:8: the module has already, with another definition than what is imported: "
                            "the type 'T' ({0}:3:1; the import's is at {1}:3:1), the function '@f' ({0}:2:1; the "
                            "import's is at {1}:2:1); rename one of them",
                            path("a.rly"), path("b.rly"))));
}

TEST_F(ImportedTexts, IntoAModuleTakeAllOrNothing) {
  const IRModule module = parse_module(std::string(kHead) + "def @sum() { 1 }\ntype List { Mine }");
  const IRModule before = snapshot(module);
  EXPECT_THAT(kit::user_error_of([&] { import_text(module, "prelude.rly"); }),
              testing::AllOf(HasSubstr("the type 'List' (<text>:3:1; the import's is at prelude.rly:5:1)"),
                             HasSubstr("the function '@sum' (<text>:2:1; ")));
  EXPECT_TRUE(module->functions().same_as(before->functions()));
  EXPECT_TRUE(module->type_definitions().same_as(before->type_definitions()));
  EXPECT_EQ(module->source_map().size(), 1u);
}

TEST_F(ImportedTexts, IntoAModuleThatHasThemAlreadyChangeNothing) {
  const IRModule module = make_module();
  import_text(module, "prelude.rly");
  const IRModule before = snapshot(module);
  import_text(module, "prelude.rly");
  EXPECT_TRUE(module->functions().same_as(before->functions()));
  // A definition that passes have changed is still the same definition.
  const GlobalVar id = module->get_global_var("id");
  const Function changed = make_object<FunctionNode>(*module->lookup("id").as<FunctionNode>());
  changed->attrs.set("Inline", Value(1));
  module->add_function(id, changed, true);
  const IRModule after = snapshot(module);
  import_text(module, "prelude.rly");
  EXPECT_TRUE(module->functions().same_as(after->functions()));
}

// Types of the text are those of the module, so that its values fit.
TEST_F(ImportedTexts, IntoAModuleUseItsTypes) {
  write("lib.rly",
        "import \"prelude.rly\"\ndef @first(%x: List[int32]) -> int32 { @hd(%x) }\ndef @two() { Cons(1, Nil) }");
  IRModule module = make_module();
  import_text(module, "prelude.rly");
  const TypeData list = module->type_definitions().at(module->find_global_type_var("List"));
  import_text(module, path("lib.rly"), {.import_paths = {path()}});
  EXPECT_EQ(module->type_definitions().at(module->find_global_type_var("List")), list);
  const Expr body = module->lookup("two").cast<FunctionNode>()->body;
  EXPECT_EQ(body.as<CallNode>()->op, Expr(list->constructors[0]));
  module = infer_type(module);
  EXPECT_TRUE(module->lookup("first")->has_checked_type());
}

TEST(SourceMap, HasTheTextWithoutItsMetadata) {
  const std::string text = std::string(kHead) + "def @main() { 1 }\n";
  const IRModule module = parse_module(text + "#[metadata]\n{\"version\": 1, \"relay.Constant\": []}", "here");
  ASSERT_EQ(module->source_map().size(), 1u);
  EXPECT_EQ(module->source_map().at("here")->source, text);
  EXPECT_EQ(infer_type(module)->source_map().size(), 1u);
  EXPECT_TRUE(structural_equal(Value(module), Value(parse_module(text, "there"))));
}

}  // namespace
}  // namespace headrace::relay
