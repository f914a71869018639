// headrace: compiles models to native artifacts, runs them, looks into them, times and checks them.
#include <iterator>

#include "tools/headrace/program.h"

int main(int argc, char** argv) {
  char self[] = "/proc/self/exe";
  char* words[] = {self};
  return headrace_run_program(argc, argv, static_cast<int>(std::size(words)), words);
}
