# Installs the C++ headers for code generators (headrace::compiler): those named here, and what these include. Runs at the
# time of the install, with HEADRACE_SOURCES and HEADRACE_HEADERS_TO.
cmake_policy(VERSION 3.24)
set(pending
  base/read_text.h
  codegen/c_module.h codegen/codegen_c.h
  lower/user_ops/porting.h
  relay/expr.h relay/function_attrs.h relay/match.h relay/text/print.h relay/visit.h
  runtime/module.h)
set(headers "")
while(pending)
  list(POP_FRONT pending header)
  if(header IN_LIST headers)
    continue()
  endif()
  list(APPEND headers ${header})
  file(STRINGS ${HEADRACE_SOURCES}/${header} lines REGEX "^#include \"")
  list(TRANSFORM lines REPLACE "^#include \"(.+)\"" "\\1" OUTPUT_VARIABLE included)
  list(APPEND pending ${included})
endwhile()
foreach(header IN LISTS headers)
  get_filename_component(folder ${header} DIRECTORY)
  file(INSTALL ${HEADRACE_SOURCES}/${header} DESTINATION ${HEADRACE_HEADERS_TO}/${folder})
endforeach()
# Each library that knows objects is for this version alone. Those of Headrace itself go without, so that only the
# installed copy says it.
set(installed "$ENV{DESTDIR}${HEADRACE_HEADERS_TO}/object/object.h")
file(READ "${installed}" text)
if(NOT text MATCHES "#include \"object/same_version.h\"")
  string(REPLACE "#pragma once\n" "#pragma once\n\n#include \"object/same_version.h\"\n" text "${text}")
  file(WRITE "${installed}" "${text}")
endif()
