# headrace_room(NAME LEVEL n SIDE S|R|C [TESTS room] [LIBRARY name] [LINK libs...]): one folder under src/, one object library.
# Sources are all *.cc of the folder but *_test.cc; those become the executable <name>_test. A sub-room with TESTS, which
# names the room around it, puts its tests into that room's executable: headrace_room(passes/fold ... TESTS passes).
# A room with LIBRARY is a static library of that name, for the programs that link it, and part of no image: what the
# runtime alone does without. It brings its own fmt, which the runtime alone does not show.
# headrace_images() joins the rooms into the two core images: libheadrace_rt (S and R), libheadrace (C).
# headrace_tests() makes the rooms' tests; those of the rooms with threads also make up the target thread_tests, and
# `ctest -L pipeline` runs those of pipelines.
# A ctest named x may leave its cases as JUnit XML in results/x.xml of the build folder: `./dev check` counts those, and a
# ctest without such a file as one.

find_package(fmt 9 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
find_package(Threads REQUIRED)

add_library(headrace_options INTERFACE)
target_include_directories(headrace_options INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/third_party)
target_compile_definitions(headrace_options INTERFACE XXH_INLINE_ALL HEADRACE_VERSION="${PROJECT_VERSION}")
target_compile_options(headrace_options INTERFACE
  -Wall -Wextra -Wconversion -Werror -fno-math-errno -ffp-contract=off
  # clang counts sign changes to -Wconversion, g++ does not: the same rules under both.
  # It also warns of what libstdc++ 12 calls in its own std::stable_sort.
  "$<$<CXX_COMPILER_ID:Clang>:-Wno-sign-conversion;-Wno-deprecated-declarations>")
target_link_libraries(headrace_options INTERFACE Threads::Threads)
add_library(headrace_sanitizers INTERFACE)  # nothing but in a sanitized build; the programs in C take it as the rooms do
if(HEADRACE_SANITIZE)
  target_compile_options(headrace_sanitizers INTERFACE
    -fsanitize=${HEADRACE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
    # AddressSanitizer reports the accesses that these would, at or near null or past an object; they are slow to compile.
    -fno-sanitize=null,object-size)
  target_link_options(headrace_sanitizers INTERFACE -fsanitize=${HEADRACE_SANITIZE})
  # A program in C that loads our libraries has to bring the part of UBSan's runtime that is for C++.
  target_link_options(headrace_sanitizers INTERFACE $<$<C_COMPILER_ID:Clang>:-fsanitize-link-c++-runtime>)
  target_link_libraries(headrace_sanitizers INTERFACE $<$<C_COMPILER_ID:Clang>:stdc++>)
endif()
target_link_libraries(headrace_options INTERFACE headrace_sanitizers)

# The headers and options that the sources of all rooms share; made once for the rooms, and once for their tests.
set(HEADRACE_PRECOMPILED
  <algorithm> <array> <atomic> <cstdint> <cstring> <functional> <map> <memory> <optional> <span> <string>
  <string_view> <type_traits> <unordered_map> <utility> <variant> <vector> <fmt/core.h> <fmt/format.h> <fmt/ranges.h>)

if(HEADRACE_UNITY)
  # A coroutine's frame holds types of its file's unnamed namespace; g++ minds that in a file that is included.
  target_compile_options(headrace_options INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  # g++ collects the garbage of its own trees whenever they double; a batch may need more than 600 MB without that,
  # and 7 % less time.
  target_compile_options(headrace_options INTERFACE
    "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1000000>")
endif()

# The rooms that the sanitized build of the check compiles as they stand: with -O1 clang takes two to five times as long for
# their batches, and the tests spend little time in them. All others are optimised there, because long chains and random
# programs spend their time in them.
set(HEADRACE_COLD_ROOMS backends/ccompiler/compile backends/plugin/compile codegen conformance driver frontend/onnx
  frontend/onnx/compositions frontend/onnx/file frontend/onnx/node frontend/onnx/parts frontend/onnx/single functions
  graph lower/rules lower/user_ops ops/algorithm ops/image ops/nn ops/qnn ops/tensor partition
  partition/plan_file passes/devices
  passes/functions passes/gradient passes/layout passes/nn passes/scale plan)

# The rooms that a release build optimises less: g++ takes a third less time for them, and they take next to none. Compiling
# SqueezeNet or ResNet-50 takes 0.7 % longer for it (processor time, best of 15 in turns).
set(HEADRACE_BRIEF_ROOMS backends/ccompiler/compile conformance driver frontend/onnx frontend/onnx/compositions
  frontend/onnx/file frontend/onnx/node frontend/onnx/parts frontend/onnx/single functions ops/algorithm ops/image
  ops/nn ops/qnn ops/tensor passes/devices passes/functions passes/gradient passes/nn)

# headrace_optimise_less(TARGET): for what runs briefly, in a release build.
function(headrace_optimise_less target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

set_property(GLOBAL PROPERTY HEADRACE_ROOMS_RT "")
set_property(GLOBAL PROPERTY HEADRACE_ROOMS_C "")

# headrace_cold_precompile(TARGET): headers precompiled with -O0, because clang takes none of another level. The first
# target that asks makes them.
function(headrace_cold_precompile target)
  get_property(first GLOBAL PROPERTY HEADRACE_COLD_FIRST)
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    set_property(GLOBAL PROPERTY HEADRACE_COLD_FIRST ${target})
    target_precompile_headers(${target} PRIVATE ${HEADRACE_PRECOMPILED})
  endif()
endfunction()

function(headrace_room folder)
  cmake_parse_arguments(ROOM "" "LEVEL;SIDE;TESTS;LIBRARY" "LINK" ${ARGN})
  if(ROOM_TESTS AND NOT folder MATCHES "^${ROOM_TESTS}/")
    message(FATAL_ERROR "headrace_room(${folder} TESTS ${ROOM_TESTS}): TESTS names the room that ${folder} is in")
  endif()
  if(ROOM_SIDE STREQUAL "C" AND NOT HEADRACE_BUILD_COMPILER)
    return()
  endif()
  string(REPLACE "/" "_" name ${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(NOT sources)
    return()
  endif()
  if(ROOM_LIBRARY)
    add_library(${ROOM_LIBRARY} STATIC ${sources})
    target_link_libraries(${ROOM_LIBRARY} PUBLIC headrace_rt PRIVATE fmt::fmt-header-only)
    if(tests)
      headrace_add_tests(${name} "${ROOM_TESTS}" ${tests})
      string(REPLACE "/" "_" tested ${ROOM_TESTS})
      set_property(GLOBAL APPEND PROPERTY HEADRACE_TEST_LIBRARIES_${tested} ${ROOM_LIBRARY})
    endif()
    return()
  endif()
  add_library(hr_${name} OBJECT ${sources})
  target_link_libraries(hr_${name} PRIVATE headrace_options ${ROOM_LINK})
  if(HEADRACE_SANITIZE AND HEADRACE_UNITY AND folder IN_LIST HEADRACE_COLD_ROOMS)
    target_compile_options(hr_${name} PRIVATE -O0)
    headrace_cold_precompile(hr_${name})
  elseif(folder STREQUAL "base")
    target_precompile_headers(hr_${name} PRIVATE ${HEADRACE_PRECOMPILED})
  else()
    target_precompile_headers(hr_${name} REUSE_FROM hr_base)
  endif()
  if(folder IN_LIST HEADRACE_BRIEF_ROOMS)
    headrace_optimise_less(hr_${name})
  endif()
  if(ROOM_SIDE STREQUAL "C")
    set_property(GLOBAL APPEND PROPERTY HEADRACE_ROOMS_C hr_${name})
    set_property(GLOBAL APPEND PROPERTY HEADRACE_LINK_C ${ROOM_LINK})
  else()
    set_property(GLOBAL APPEND PROPERTY HEADRACE_ROOMS_RT hr_${name})
    set_property(GLOBAL APPEND PROPERTY HEADRACE_LINK_RT ${ROOM_LINK})
  endif()
  if(tests)
    headrace_add_tests(${name} "${ROOM_TESTS}" ${tests})
  endif()
endfunction()

# headrace_add_tests(name room tests...): gives the tests to the executable of `room`, or without one to that of `name`.
function(headrace_add_tests name room)
  if(room)
    string(REPLACE "/" "_" name ${room})
  endif()
  get_property(rooms GLOBAL PROPERTY HEADRACE_TEST_ROOMS)
  if(NOT name IN_LIST rooms)
    set_property(GLOBAL APPEND PROPERTY HEADRACE_TEST_ROOMS ${name})
  endif()
  set_property(GLOBAL APPEND PROPERTY HEADRACE_TEST_SOURCES_${name} ${ARGN})
endfunction()

# headrace_embed_object(room name MACRO): compiles src/<room>/<name>.c for the code that the compiler links into artifacts:
# without our options or sanitizers, once for x86-64 and once for AArch64. In src/<room>/<name>_tables.cc, which embeds the
# objects, MACRO_X86_64 and MACRO_AARCH64 are their paths. The object of another machine than this build's is made by
# clang, or by Debian's cross compiler; without either its macro is not defined, and no artifacts are made for that machine.
function(headrace_embed_object room name macro)
  if(NOT TARGET hr_${room})
    return()
  endif()
  find_program(HEADRACE_CLANG NAMES clang-19 clang)
  set(source ${PROJECT_SOURCE_DIR}/src/${room}/${name}.c)
  set(objects "")
  set(definitions "")
  foreach(architecture IN ITEMS x86_64 aarch64)
    string(TOUPPER ${architecture} upper)
    find_program(HEADRACE_CC_${upper} NAMES ${architecture}-linux-gnu-gcc-12 ${architecture}-linux-gnu-gcc)
    if(architecture STREQUAL CMAKE_SYSTEM_PROCESSOR)
      set(compiler ${CMAKE_C_COMPILER})
    elseif(HEADRACE_CLANG)
      set(compiler ${HEADRACE_CLANG} --target=${architecture}-unknown-linux-gnu -nostdlibinc)
    elseif(HEADRACE_CC_${upper})
      set(compiler ${HEADRACE_CC_${upper}})
    else()
      message(STATUS "No artifacts for ${architecture}: neither clang nor ${architecture}-linux-gnu-gcc was found")
      continue()
    endif()
    set(object ${PROJECT_BINARY_DIR}/${name}.${architecture}.o)
    add_custom_command(OUTPUT ${object} DEPENDS ${source} ${PROJECT_SOURCE_DIR}/src/${room}/${name}.h VERBATIM COMMAND
      ${compiler} -std=c11 -D_DEFAULT_SOURCE -O2 -fPIC -U_FORTIFY_SOURCE -fno-stack-protector -fno-asynchronous-unwind-tables
      -Wall -Wextra -Werror -I ${PROJECT_SOURCE_DIR}/src -I ${PROJECT_SOURCE_DIR}/include
      -I ${PROJECT_SOURCE_DIR}/third_party -c ${source} -o ${object})
    list(APPEND objects ${object})
    list(APPEND definitions ${macro}_${upper}="${object}")
  endforeach()
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/${room}/${name}_tables.cc PROPERTIES
    OBJECT_DEPENDS "${objects}" COMPILE_DEFINITIONS "${definitions}")
endfunction()

function(headrace_images)
  get_property(rt GLOBAL PROPERTY HEADRACE_ROOMS_RT)
  get_property(rt_link GLOBAL PROPERTY HEADRACE_LINK_RT)
  add_library(headrace_rt SHARED)
  target_link_libraries(headrace_rt PRIVATE ${rt} ${rt_link} PUBLIC headrace_options ${CMAKE_DL_LIBS})
  # An image calls its own functions, and not what a program has under the same names: the tests' programs, which are
  # not optimised, have the inline functions of our headers, too.
  target_link_options(headrace_rt PRIVATE -Wl,-Bsymbolic-functions)
  if(NOT HEADRACE_BUILD_COMPILER)
    # The runtime alone is to stay small, so it does not show what nothing outside calls.
    target_link_options(headrace_rt PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/runtime_symbols.map)
  endif()
  get_property(c GLOBAL PROPERTY HEADRACE_ROOMS_C)
  if(c)
    get_property(c_link GLOBAL PROPERTY HEADRACE_LINK_C)
    add_library(headrace SHARED)
    target_link_libraries(headrace PRIVATE ${c} ${c_link} PUBLIC headrace_rt)
    target_link_options(headrace PRIVATE -Wl,-Bsymbolic-functions)
  endif()
endfunction()

function(headrace_tests)
  if(NOT HEADRACE_BUILD_TESTS)
    return()
  endif()
  find_package(GTest REQUIRED)
  add_custom_target(thread_tests)
  get_property(rooms GLOBAL PROPERTY HEADRACE_TEST_ROOMS)
  foreach(name IN LISTS rooms)
    get_property(sources GLOBAL PROPERTY HEADRACE_TEST_SOURCES_${name})
    add_executable(${name}_test ${sources})
    if(TARGET headrace)
      target_link_libraries(${name}_test PRIVATE headrace)
      add_dependencies(${name}_test headrace_llvm)
    endif()
    get_property(libraries GLOBAL PROPERTY HEADRACE_TEST_LIBRARIES_${name})
    target_link_libraries(${name}_test PRIVATE headrace_kit ${libraries})
    target_compile_definitions(${name}_test PRIVATE HEADRACE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    # The tests' own code is compiled as it stands: optimising it was a third of the time to build them.
    target_compile_options(${name}_test PRIVATE -O0)
    if(name STREQUAL "base")
      target_precompile_headers(base_test PRIVATE ${HEADRACE_PRECOMPILED} <gmock/gmock.h> <gtest/gtest.h>)
    else()
      target_precompile_headers(${name}_test REUSE_FROM base_test)
    endif()
    add_test(NAME ${name} COMMAND ${name}_test)
    set_tests_properties(${name} PROPERTIES
      TIMEOUT 600 ENVIRONMENT "GTEST_OUTPUT=xml:${PROJECT_BINARY_DIR}/results/${name}.xml")
    if(name MATCHES "^(runtime|executors|devices|load|ir$|cost)")
      add_dependencies(thread_tests ${name}_test)
      set_property(TEST ${name} APPEND PROPERTY LABELS threads)
    endif()
    if(name MATCHES "^(executors_pipeline|plan_pipeline|devices)$")
      set_property(TEST ${name} APPEND PROPERTY LABELS pipeline)
    endif()
  endforeach()
endfunction()

# headrace_script_test(NAME script ARGUMENTS...): a ctest that is a Python program of the standard library, with Debian's
# Python. Without arguments it runs nothing of the build, and a sanitized one does not have it.
function(headrace_script_test name script)
  if(HEADRACE_BUILD_TESTS AND (ARGN OR NOT HEADRACE_SANITIZE))
    add_test(NAME ${name} COMMAND /usr/bin/python3 ${PROJECT_SOURCE_DIR}/${script} ${ARGN})
    set_tests_properties(${name} PROPERTIES TIMEOUT 600)
  endif()
endfunction()

# headrace_python_test(NAME path): a pytest file or folder in .venv, with the package where it is built; reported as
# skipped where PyPI was not reachable.
function(headrace_python_test name path)
  if(NOT HEADRACE_BUILD_TESTS)
    return()
  endif()
  set(python ${PROJECT_SOURCE_DIR}/.venv/bin/python)
  set(xml ${PROJECT_BINARY_DIR}/results/${name}.xml)
  add_test(NAME ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} COMMAND sh -c
    "${python} -c 'import pytest' 2>/dev/null || { echo 'pytest is not in .venv (./dev setup needs PyPI)'; exit 77; }; \
PYTHONPATH=${PROJECT_BINARY_DIR}/python HEADRACE_PYTHON=${python} ${python} -m pytest -q -p no:cacheprovider --junitxml=${xml} ${path}; \
code=$?; [ $code -eq 5 ] && grep -q 'skipped=\"[1-9]' ${xml} && exit 77; exit $code")  # 5: the whole file is skipped
  set_tests_properties(${name} PROPERTIES TIMEOUT 1200 SKIP_RETURN_CODE 77 LABELS python)
endfunction()

# The programs of src/relay/text/std, as text in the library.
function(headrace_std_texts)
  if(NOT HEADRACE_BUILD_COMPILER)
    return()
  endif()
  foreach(name core gradient nat prelude)
    set(file ${PROJECT_SOURCE_DIR}/src/relay/text/std/${name}.rly)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    string(TOUPPER ${name} upper)
    file(READ ${file} HEADRACE_STD_${upper})
  endforeach()
  configure_file(${PROJECT_SOURCE_DIR}/src/relay/text/std/std_texts.cc.in ${PROJECT_BINARY_DIR}/generated/std_texts.cc @ONLY)
  target_sources(hr_relay_text PRIVATE ${PROJECT_BINARY_DIR}/generated/std_texts.cc)
endfunction()

# The calls with which the ops are tested, as text in the library: the conformance kit makes cases of them. The lines of
# results stay out, because the kit compares with the interpreter.
function(headrace_given_cases)
  if(NOT HEADRACE_BUILD_COMPILER)
    return()
  endif()
  set(file ${PROJECT_SOURCE_DIR}/src/ops/tests/op_cases.txt)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  string(REGEX REPLACE "\nerror [^\n]*\nprogram [^\n]*\nmessage [^\n]*(\nin [^\n]*)*\nend" "" text "${text}")
  string(REGEX REPLACE "\n(out|tolerance) [^\n]*" "" text "${text}")
  string(REGEX REPLACE "\nend" "" HEADRACE_GIVEN_CASES "${text}")
  configure_file(${PROJECT_SOURCE_DIR}/src/conformance/given_texts.cc.in ${PROJECT_BINARY_DIR}/generated/given_texts.cc @ONLY)
  target_sources(hr_conformance PRIVATE ${PROJECT_BINARY_DIR}/generated/given_texts.cc)
endfunction()
