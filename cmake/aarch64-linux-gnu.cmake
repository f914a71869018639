# Toolchain file for a build of the runtime that runs on AArch64 Linux, with Debian's cross compiler
# (g++-12-aarch64-linux-gnu): the preset aarch64-runtime. Programs of the build run here through qemu-user where it is
# installed.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc-12)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++-12)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
find_program(HEADRACE_QEMU NAMES qemu-aarch64 qemu-aarch64-static NO_CMAKE_FIND_ROOT_PATH)
if(HEADRACE_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${HEADRACE_QEMU} -L /usr/aarch64-linux-gnu)
endif()

# The runtime uses three libraries by their headers alone, which are the same for every machine. The cross compiler does
# not look into /usr/include, whose other headers are this machine's, so it gets a folder with links to those three, and
# find_package(fmt) a package without a library.
set(headers ${CMAKE_BINARY_DIR}/headers)
file(MAKE_DIRECTORY ${headers})
foreach(entry IN ITEMS fmt nlohmann xxhash.h xxh3.h)
  if(NOT EXISTS /usr/include/${entry})
    message(FATAL_ERROR "/usr/include/${entry} is missing; ./dev setup installs it")
  endif()
  if(NOT EXISTS ${headers}/${entry})
    file(CREATE_LINK /usr/include/${entry} ${headers}/${entry} SYMBOLIC)
  endif()
endforeach()
file(STRINGS /usr/include/fmt/core.h fmt_version REGEX "#define FMT_VERSION [0-9]+")
string(REGEX REPLACE ".* ([0-9]+)[0-9][0-9][0-9][0-9]$" "\\1" fmt_version "${fmt_version}")
file(WRITE ${headers}/fmt-config.cmake
  "if(NOT TARGET fmt::fmt-header-only)
  add_library(fmt::fmt-header-only INTERFACE IMPORTED)
  set_target_properties(fmt::fmt-header-only PROPERTIES INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY=1)
endif()\n")
file(WRITE ${headers}/fmt-config-version.cmake
  "set(PACKAGE_VERSION ${fmt_version})
if(NOT PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()\n")
set(fmt_DIR ${headers})
set(CMAKE_CXX_FLAGS_INIT "-isystem ${headers}")
