# Checks every configuration that the documentation shows: each ```yaml block of DOCS, and deploy/quickstart.yaml with
# and without what is commented out in it.
#   cmake -D MUSTER=<executable> -D SOURCE=<source directory> -D WORK=<scratch directory> -P docs_test.cmake

set(DOCS README.md coordinator/CONFIGURATION.md plugins/fake/README.md plugins/fs/README.md plugins/nats/README.md
  plugins/postgres/README.md)

function(check name yaml)
  file(WRITE ${WORK}/muster.yaml "${yaml}")
  execute_process(COMMAND ${MUSTER} check ${WORK}/muster.yaml RESULT_VARIABLE status OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${name}: muster check: ${status}\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
foreach(doc ${DOCS})
  file(READ ${SOURCE}/${doc} text)
  set(blocks 0)
  string(FIND "${text}" "```yaml\n" begin)
  while(NOT begin EQUAL -1)
    math(EXPR begin "${begin} + 8")
    string(SUBSTRING "${text}" ${begin} -1 text)
    string(FIND "${text}" "```" end)
    string(SUBSTRING "${text}" 0 ${end} yaml)
    string(SUBSTRING "${text}" ${end} -1 text)
    math(EXPR blocks "${blocks} + 1")
    check("${doc}, yaml block ${blocks}" "${yaml}")
    string(FIND "${text}" "```yaml\n" begin)
  endwhile()
  if(blocks EQUAL 0)
    message(FATAL_ERROR "${doc}: no yaml block")
  endif()
endforeach()

file(READ ${SOURCE}/deploy/quickstart.yaml quickstart)
check("deploy/quickstart.yaml" "${quickstart}")
string(REPLACE "\n#  -" "\n  -" with_all "${quickstart}")
if(with_all STREQUAL quickstart)
  message(FATAL_ERROR "deploy/quickstart.yaml: nothing is commented out")
endif()
check("deploy/quickstart.yaml with all its lines" "${with_all}")
file(REMOVE_RECURSE ${WORK})
