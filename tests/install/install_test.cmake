# Installs the build into a prefix of its own and does there what the guide for authors of plugins says: builds the plugin
# beside this file against the installed SDK, tests it, and lets a fleet of its own run it.
#   cmake -D BUILD=<build directory> -D WORK=<scratch directory> [-D SANITIZE=address,undefined] -P install_test.cmake

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}: ${status}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect what pattern)
  if(NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "${what} says:\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)

set(flags -Wall -Wextra -Wpedantic -Werror)
if(SANITIZE)
  list(APPEND flags -fsanitize=${SANITIZE} -fno-sanitize-recover=all)  # the installed libraries are built with it
endif()
list(JOIN flags " " flags)
file(COPY ${CMAKE_CURRENT_LIST_DIR}/notes DESTINATION ${WORK})
set(notes ${WORK}/notes)
file(MAKE_DIRECTORY ${WORK}/data)
foreach(variable MUSTER_NATS_URL MUSTER_CONFIG MUSTER_PREFIX MUSTER_STORE)
  unset(ENV{${variable}})
endforeach()
run(${CMAKE_COMMAND} -E env --unset=NOTES_ROOT CMAKE_BUILD_PARALLEL_LEVEL=2
  CMAKE_PREFIX_PATH=${WORK}/prefix CXXFLAGS=${flags} MUSTER_DATA_DIR=${WORK}/data
  PATH=${WORK}/prefix/bin:$ENV{PATH} ${CMAKE_COMMAND} -E chdir ${notes} ./try.sh)
expect("try.sh" "mine +NOTES::Note +1 .*mine +NOTES::Todo +2 .*mine +NOTES::Note +1 .*mine +NOTES::Todo +2 ")
expect("try.sh" "function=initialize opened my-notes")
if(output MATCHES "open sesame")
  message(FATAL_ERROR "the key is in the log:\n${output}")
endif()

# The plugin against the contract, as the guide's end says.
file(READ ${notes}/conformance.cmake conformance)
file(APPEND ${notes}/CMakeLists.txt "${conformance}")
run(${CMAKE_COMMAND} -E env CMAKE_PREFIX_PATH=${WORK}/prefix CXXFLAGS=${flags} ${CMAKE_COMMAND} ${notes}/build)
run(${CMAKE_CTEST_COMMAND} --test-dir ${notes}/build --output-on-failure -V -R notes_conformance_test)
expect("notes_conformance_test" "same-key +NOTES::Note +ok.* 0 failed")

run(${notes}/build/muster-plugin-notes --help)
expect("--help" "Text files in a directory.*Example:")
run(${notes}/build/muster-plugin-notes --manifest)
string(JSON type GET "${output}" types 0 name)
if(NOT type STREQUAL "NOTES::Note")
  message(FATAL_ERROR "--manifest says:\n${output}")
endif()
file(REMOVE_RECURSE ${WORK})
