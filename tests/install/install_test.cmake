# Installs the build into a prefix of its own and builds the plugin beside this file against it, as an author would.
#   cmake -D BUILD=<build directory> -D WORK=<scratch directory> [-D SANITIZE=address,undefined] -P install_test.cmake

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}: ${status}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)

set(flags -Wall -Wextra -Wpedantic -Werror)
if(SANITIZE)
  list(APPEND flags -fsanitize=${SANITIZE} -fno-sanitize-recover=all)  # the installed libraries are built with it
endif()
list(JOIN flags " " flags)
run(${CMAKE_COMMAND} -G Ninja -S ${CMAKE_CURRENT_LIST_DIR}/notes -B ${WORK}/build -DCMAKE_PREFIX_PATH=${WORK}/prefix
  -DCMAKE_CXX_FLAGS=${flags})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/notes_test)

run(${WORK}/build/muster-plugin-notes --help)
if(NOT output MATCHES "Text files in a directory.*Example:")
  message(FATAL_ERROR "--help says:\n${output}")
endif()
run(${WORK}/build/muster-plugin-notes --manifest)
string(JSON type GET "${output}" types 0 name)
if(NOT type STREQUAL "NOTES::Note")
  message(FATAL_ERROR "--manifest says:\n${output}")
endif()
file(REMOVE_RECURSE ${WORK})
