// The program `headrace` as a function of libheadrace_verbs.so. Its own main() calls it, and so does `python -m
// headrace`, in a process that has backends in Python.
#pragma once

extern "C" {

// Runs the command line `argv` and returns the exit code, a number of hr_status; it throws nothing. `words` start this
// program again when arguments are appended to them: the first one is a path. Call it once in a process, from its only
// thread, because verbs block signals in the threads that they start.
int headrace_run_program(int argc, char** argv, int num_words, char** words);

}  // extern "C"
