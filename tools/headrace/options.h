// Options that several verbs share.
#pragma once

#include "driver/compile.h"
#include "tools/headrace/file_uses.h"
#include "tools/headrace/option_text.h"
#include "tools/headrace/verbs.h"

namespace headrace::tools {

// A model and how to compile it.
struct ModelOptions {
  std::string path;
  std::vector<std::string> shapes;  // "x=1,3,224,224"
  std::vector<std::string> dims;    // "batch=1"
  std::vector<std::string> bound;   // "axes=axes.npy"
  std::string weights;              // data of the constants of relay text
  std::string target;               // "llvm -mcpu=x86-64-v3", or its parts:
  std::string cpu, features;
  int opt_level = 3;
  int jobs = 0;
  std::vector<std::string> disabled_passes;
  std::vector<std::string> config;           // "relay.FuseOps.max_depth=4"
  std::vector<std::string> backends;         // in the order of their priority
  std::vector<std::string> backend_options;  // "ccompiler.cc=clang"
  std::string placement = "order";
  std::string costs;
  std::string plan;                    // a plan file; empty: none
  std::vector<std::string> overrides;  // "layer4.*=native"
  int threads = 0;                     // that it is compiled for; a verb with --threads sets it; 0: it names none

  void add_to(CLI::App& verb, const std::string& what_models);
  // Returns the names of the options given on the command line, such as "--shape".
  std::vector<std::string> given() const;
  // Returns the files that these options and --plugin name, all of which are read. Throws UsageError for a --bind
  // without a file.
  FileUses files(const Common& common) const;
  // `options`: of the compile, whose backends may claim nodes of the model.
  driver::LoadOptions load_options(const driver::CompileOptions& options) const;
  // Returns the options of the compile. Shows progress on stderr if it is a terminal and --quiet is not given.
  driver::CompileOptions compile_options(const Common& common) const;

 private:
  void add_backends_to(CLI::App& verb);

  std::vector<const CLI::Option*> options_;
  const CLI::Option* target_option_ = nullptr;  // tells an omitted target from an empty one, which is an error
};

}  // namespace headrace::tools
