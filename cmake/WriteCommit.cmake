# Writes OUTPUT, a header with the commit of SOURCE ("unknown" outside a git checkout), only when it changed.
execute_process(COMMAND git -C "${SOURCE}" describe --always --dirty --abbrev=12 --match=NoTag
                OUTPUT_VARIABLE commit RESULT_VARIABLE result ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT result EQUAL 0)
  set(commit unknown)
endif()
set(content "#define HKT_COMMIT \"${commit}\"\n")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" old)
endif()
if(NOT content STREQUAL "${old}")
  file(WRITE "${OUTPUT}" "${content}")
endif()
