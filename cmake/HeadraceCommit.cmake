# Sets HEADRACE_COMMIT to the commit of this tree, for `headrace --version`: twelve digits, or "unknown" without Git or
# its folder, as in a source package. A new commit configures again.
set(HEADRACE_COMMIT unknown)
find_program(HEADRACE_GIT git)
if(HEADRACE_GIT)
  # Git must not take the repository of a folder that an unpacked source package is in.
  cmake_path(GET PROJECT_SOURCE_DIR PARENT_PATH ceiling)
  set(git ${CMAKE_COMMAND} -E env GIT_CEILING_DIRECTORIES=${ceiling} ${HEADRACE_GIT})
  execute_process(COMMAND ${git} rev-parse --short=12 HEAD WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failure)
  execute_process(COMMAND ${git} rev-parse --git-path logs/HEAD WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    OUTPUT_VARIABLE log ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT failure)
    set(HEADRACE_COMMIT ${commit})
    cmake_path(ABSOLUTE_PATH log BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    if(EXISTS ${log})
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${log})
    endif()
  endif()
endif()
