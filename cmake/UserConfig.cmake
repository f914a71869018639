# Reads options of a build from the file config.cmake in its folder, in lines such as set(USE_CODEGENC OFF). Include it
# before the options are declared: option() leaves a variable that is set. The file also decides against -D.
if(EXISTS ${CMAKE_BINARY_DIR}/config.cmake)
  message(STATUS "Options of ${CMAKE_BINARY_DIR}/config.cmake")
  include(${CMAKE_BINARY_DIR}/config.cmake)
endif()
