# Flags that every target of the project shares.
add_library(latchfs_flags INTERFACE)
target_compile_options(latchfs_flags INTERFACE -Wall -Wextra -Wpedantic -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(latchfs_flags INTERFACE -Wthread-safety)
endif()
target_include_directories(latchfs_flags INTERFACE ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(latchfs_flags INTERFACE LATCHFS_VERSION="${PROJECT_VERSION}" _FILE_OFFSET_BITS=64)
if(LATCHFS_SANITIZE)
  target_compile_options(latchfs_flags INTERFACE -fsanitize=${LATCHFS_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(latchfs_flags INTERFACE -fsanitize=${LATCHFS_SANITIZE})
  if(LATCHFS_SANITIZE MATCHES "undefined")
    # With these three g++ 12 takes five times as long for code with variants and maps; a null pointer stops the program anyway.
    target_compile_options(latchfs_flags INTERFACE -fno-sanitize=null,alignment,vptr)
  endif()
endif()

# latchfs_layer(NAME DEPS...): one static library from the sources of the current folder. It may link only what is
# named here, so an include that points upward fails to link (and the include lint names it).
function(latchfs_layer name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(NOT sources)
    add_library(latchfs_${name} INTERFACE)
    return()
  endif()
  add_library(latchfs_${name} STATIC ${sources})
  target_include_directories(latchfs_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(latchfs_${name} PUBLIC latchfs_flags ${ARGN})
endfunction()
