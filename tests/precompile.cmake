# SPDX-License-Identifier: Apache-2.0
# What nearly every file includes, compiled once: the sanitizer build, which is the largest of scripts/test, reads the
# standard library and GoogleTest for half of its time otherwise. Other builds do without, so that a file that forgets
# an include is noticed.
set(popgate_standard_headers <algorithm> <array> <chrono> <deque> <fstream> <functional> <map> <memory>
    <optional> <set> <span> <string> <string_view> <unordered_map> <vector>)
set(popgate_test_headers <gmock/gmock.h> <gtest/gtest.h>)

# Libraries and programs each need their own: the one is compiled with -fPIC, the other with -fPIE.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled.cc CONTENT "int main() {}\n")
add_library(popgate_precompiled_library OBJECT ${CMAKE_BINARY_DIR}/precompiled.cc)
add_executable(popgate_precompiled_program ${CMAKE_BINARY_DIR}/precompiled.cc)
target_link_libraries(popgate_precompiled_library PRIVATE popgate_build)
target_link_libraries(popgate_precompiled_program PRIVATE popgate_build GTest::gmock GTest::gtest)
target_precompile_headers(popgate_precompiled_library PRIVATE ${popgate_standard_headers})
target_precompile_headers(popgate_precompiled_program PRIVATE ${popgate_standard_headers} ${popgate_test_headers})

# Every library and every test of a folder and of the folders in it.
function(popgate_use_precompiled folder)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    get_target_property(libraries ${target} LINK_LIBRARIES)
    if(type STREQUAL "STATIC_LIBRARY")
      target_precompile_headers(${target} REUSE_FROM popgate_precompiled_library)
    elseif(type STREQUAL "EXECUTABLE" AND "GTest::gtest" IN_LIST libraries AND NOT target STREQUAL "popgate_precompiled_program")
      target_precompile_headers(${target} REUSE_FROM popgate_precompiled_program)
    endif()
  endforeach()
  get_property(subfolders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(subfolder ${subfolders})
    popgate_use_precompiled(${subfolder})
  endforeach()
endfunction()
foreach(folder daemon replay tests)
  popgate_use_precompiled(${CMAKE_SOURCE_DIR}/${folder})
endforeach()
