#include "load/load_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit/errors.h"
#include "runtime/function_module.h"

namespace headrace::load {
namespace {

using runtime::Module;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string error_of(const std::string& path, const std::string& format = "") {
  return kit::user_error_of([&] { load_module(path, format); });
}

TEST(LoadModule, AUsersFormatIsLoadedByTheUsersFunction) {
  register_global("runtime.module.loadfile_test1", make_packed([](const std::string& path, const std::string& format) {
                    return runtime::make_function_module(
                        "test", {{"where", make_packed([path, format] { return path + " as " + format; })}}, {});
                  }));
  EXPECT_EQ(load_module("a/b.test1").GetFunction("where")().as<std::string>(), "a/b.test1 as test1");
  EXPECT_EQ(load_module("a/b.so", "test1").GetFunction("where")().as<std::string>(), "a/b.so as test1");
}

TEST(LoadModule, AFormatThatNobodyLoadsIsNamed) {
  register_global("runtime.module.loadfile_test2",
                  make_packed([](const std::string&, const std::string&) { return Module(); }));
  EXPECT_THAT(error_of("a.xyz"),
              AllOf(HasSubstr("cannot load 'a.xyz': no loader is registered for the format 'xyz'; there are so"),
                    HasSubstr("test2"), HasSubstr("runtime.module.loadfile_xyz")));
  EXPECT_THAT(error_of("a.so", "xyz"), HasSubstr("the format 'xyz'"));
  EXPECT_THAT(error_of("a.tar"), HasSubstr("the format 'tar'"));
}

TEST(LoadModule, ALoaderGivesAModule) {
  register_global("runtime.module.loadfile_test3", PackedFunc([](Args) { return Value(7); }));
  register_global("runtime.module.loadfile_test4", PackedFunc([](Args) { return Value(); }));
  register_global("runtime.module.loadbinary_test5", PackedFunc([](Args) { return Value("module"); }));
  register_global("runtime.module.loadbinary_test6",
                  PackedFunc([](Args) -> Value { throw_user_error("no such chip"); }));
  EXPECT_EQ(error_of("a.test3"), "cannot load 'a.test3': the function 'runtime.module.loadfile_test3' gave no module");
  EXPECT_THAT(error_of("a.test4"), HasSubstr("gave no module"));
  EXPECT_EQ(kit::user_error_of([] { load_binary("test5", "abc"); }),
            "the function 'runtime.module.loadbinary_test5' gave no module for the 3 bytes it was given");
  EXPECT_EQ(kit::user_error_of([] { load_binary("test6", ""); }), "no such chip");
}

// Which would never end.
TEST(LoadModule, ALoaderThatLoadsItsOwnFileIsTold) {
  register_global("runtime.module.loadfile_test7",
                  make_packed([](const std::string& path, const std::string&) { return load_module("./" + path); }));
  EXPECT_EQ(
      error_of("a.test7"),
      "cannot load './a.test7': the function 'runtime.module.loadfile_test7' asks for what it was called to load, "
      "which would never end; it must make the module itself");
  EXPECT_THAT(error_of("a.test7"), HasSubstr("which would never end")) << "and the error is forgotten";
  register_global("runtime.module.loadbinary_test8",
                  make_packed([](const Bytes& bytes) { return load_binary("test8", bytes.data); }));
  EXPECT_THAT(kit::user_error_of([] { load_binary("test8", "abc"); }),
              HasSubstr("cannot load the 3 bytes of a module of the kind 'test8': the function "
                        "'runtime.module.loadbinary_test8' asks for what it was called to load"));
}

// Another file, or the same one in another format, may be what a file's module is made of.
TEST(LoadModule, ALoaderMayLoadOthers) {
  register_global("runtime.module.loadfile_test9", make_packed([](const std::string& path, const std::string&) {
                    if (path == "inner.test9") return load_module(path, "test1");
                    return load_module("inner.test9");
                  }));
  register_global("runtime.module.loadfile_test1", make_packed([](const std::string& path, const std::string& format) {
                    return runtime::make_function_module(
                        "test", {{"where", make_packed([path, format] { return path + " as " + format; })}}, {});
                  }),
                  true);
  EXPECT_EQ(load_module("outer.test9").GetFunction("where")().as<std::string>(), "inner.test9 as test1");
}

TEST(LoadModule, FilesThatAreNone) {
  EXPECT_THAT(error_of(""), HasSubstr("''"));
  EXPECT_THAT(error_of("/none/such.so"), HasSubstr("/none/such.so"));
  EXPECT_THAT(error_of("/tmp", "so"), HasSubstr("/tmp"));
}

}  // namespace
}  // namespace headrace::load
