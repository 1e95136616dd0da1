# Flags every target shares, ccache when it is there, and the sanitizers.
add_library(hkt_flags INTERFACE)
target_include_directories(hkt_flags INTERFACE "$<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}>")
target_compile_features(hkt_flags INTERFACE cxx_std_20)
target_compile_options(hkt_flags INTERFACE "$<BUILD_INTERFACE:-Wall;-Wextra;-Wconversion;-Wno-sign-conversion>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(hkt_flags INTERFACE "$<BUILD_INTERFACE:-Wno-restrict>")  # false alarms of g++ 12 in std::string
endif()
if(HKT_WERROR)
  target_compile_options(hkt_flags INTERFACE "$<BUILD_INTERFACE:-Werror>")
endif()
if(HKT_SANITIZE)
  # vptr checks need type information that LibTorch does not export. Findings end the program: a finding that only prints
  # is a test that cannot fail.
  set(flags "-fsanitize=${HKT_SANITIZE};-fno-sanitize-recover=all;-fno-sanitize=vptr;-fno-omit-frame-pointer")
  target_compile_options(hkt_flags INTERFACE "$<BUILD_INTERFACE:${flags}>")
  target_link_options(hkt_flags INTERFACE "$<BUILD_INTERFACE:-fsanitize=${HKT_SANITIZE}>")
endif()

find_program(CCACHE_PROGRAM ccache)
mark_as_advanced(CCACHE_PROGRAM)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # With these two a second clone in another folder hits the cache of the first.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}"
      CCACHE_NOHASHDIR=1 "${CCACHE_PROGRAM}")
endif()
