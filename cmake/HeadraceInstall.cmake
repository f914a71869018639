# The files that `cmake --install` puts under a prefix, which may be moved: the programs, the libraries, the headers of
# include/, those of src/ that code generators in C++ take, and a CMake package for other projects. A wheel has rules of its own
# (python/CMakeLists.txt).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/headrace)

add_library(headrace_headers INTERFACE)
target_include_directories(headrace_headers INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(headrace_headers PROPERTIES EXPORT_NAME headers)
install(TARGETS headrace_headers EXPORT headrace)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/headrace DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/third_party/dlpack/dlpack.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dlpack)
if(TARGET headrace)
  install(CODE "set(HEADRACE_SOURCES \"${PROJECT_SOURCE_DIR}/src\")
set(HEADRACE_HEADERS_TO \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/headrace/compiler\")")
  install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/install_compiler_headers.cmake)
endif()
install(FILES LICENSE THIRD_PARTY_NOTICES.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The libraries look for each other in their own folder, the plugins for a library of the system where it was linked.
foreach(library headrace_rt headrace headrace_llvm headrace_onednn headrace_verbs)
  if(TARGET ${library})
    set_target_properties(${library} PROPERTIES INSTALL_RPATH $ORIGIN INSTALL_RPATH_USE_LINK_PATH ON)
    install(TARGETS ${library} DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endforeach()
file(RELATIVE_PATH libraries_from_programs ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
foreach(program headrace_program headrace-opt headrace-stage-host)
  if(TARGET ${program})
    set_target_properties(${program} PROPERTIES INSTALL_RPATH $ORIGIN/${libraries_from_programs})
    install(TARGETS ${program} DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()

if(TARGET headrace_manual)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/share/man/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} FILES_MATCHING PATTERN "*.1")
endif()

install(EXPORT headrace NAMESPACE headrace:: FILE headrace-targets.cmake DESTINATION ${package})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/headrace-config.cmake.in
  ${PROJECT_BINARY_DIR}/generated/headrace-config.cmake INSTALL_DESTINATION ${package}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/headrace-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/headrace-config.cmake
  ${PROJECT_BINARY_DIR}/generated/headrace-config-version.cmake DESTINATION ${package})
