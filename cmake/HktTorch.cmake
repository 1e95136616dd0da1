# LibTorch out of the PyTorch of a Python: TORCH_PYTHON, else the active environment's python3, else .venv/bin/python.
# Linked directly (libtorch, libtorch_cpu, libc10) and not through find_package(Torch), so that a CUDA build of PyTorch
# needs no CUDA toolkit. Gives the target hkt_torch and the variables HKT_TORCH_VERSION, HKT_TORCH_LIB_DIR.
find_file(HKT_FIND_TORCH find_torch.sh PATHS "${CMAKE_CURRENT_LIST_DIR}/../scripts" "${CMAKE_CURRENT_LIST_DIR}"
          NO_DEFAULT_PATH REQUIRED)
mark_as_advanced(HKT_FIND_TORCH)
# For a wheel first the Python that pip runs in, then every python3 of PATH: in an isolated build the first has no PyTorch
# when the front end made a new environment for it (python -m build), and then the caller's is further down in PATH.
set(torch_pythons)
if(SKBUILD)
  set(torch_pythons "${PYTHON_EXECUTABLE}")
  cmake_path(CONVERT "$ENV{PATH}" TO_CMAKE_PATH_LIST folders)
  list(TRANSFORM folders APPEND "/python3")
  list(APPEND torch_pythons ${folders})
endif()
execute_process(COMMAND sh "${HKT_FIND_TORCH}" --describe ${torch_pythons} OUTPUT_VARIABLE torch_description
                ERROR_VARIABLE torch_error RESULT_VARIABLE torch_result OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT torch_result EQUAL 0)
  message(FATAL_ERROR "${torch_error}")
endif()
string(REPLACE "\n" ";" torch_description "${torch_description}")
list(GET torch_description 0 HKT_TORCH_PYTHON)
list(GET torch_description 1 HKT_TORCH_VERSION)
list(GET torch_description 2 HKT_TORCH_DIR)
set(HKT_TORCH_LIB_DIR "${HKT_TORCH_DIR}/lib")
message(STATUS "PyTorch ${HKT_TORCH_VERSION} of ${HKT_TORCH_PYTHON}")

find_package(Threads REQUIRED)
if(NOT TARGET hkt_torch)  # a project may ask for the package in several of its folders
  add_library(hkt_torch INTERFACE)
  target_include_directories(hkt_torch SYSTEM INTERFACE
    "$<BUILD_INTERFACE:${HKT_TORCH_DIR}/include>" "$<BUILD_INTERFACE:${HKT_TORCH_DIR}/include/torch/csrc/api/include>")
  # The linker puts the folder of these into the RUNPATH of programs that are not installed.
  target_link_libraries(hkt_torch INTERFACE
    "$<BUILD_INTERFACE:${HKT_TORCH_LIB_DIR}/libtorch.so>" "$<BUILD_INTERFACE:${HKT_TORCH_LIB_DIR}/libtorch_cpu.so>"
    "$<BUILD_INTERFACE:${HKT_TORCH_LIB_DIR}/libc10.so>" Threads::Threads)
  # at::parallel_for is an inline template: without -fopenmp it is silently serial. The plain flag, and not
  # OpenMP::OpenMP_CXX, so that the run-time is the one that PyTorch ships (torch/lib is in the RUNPATH).
  target_compile_options(hkt_torch INTERFACE "$<BUILD_INTERFACE:-fopenmp>")
  # A CUDA build's libtorch_cpu names CUDA libraries that the linker need not find; they are loaded from their wheels.
  target_link_options(hkt_torch INTERFACE -fopenmp "$<BUILD_INTERFACE:-Wl,--allow-shlib-undefined>")
# libstdc++ first: PyTorch 2.9's libraries export a copy of std::filesystem of an older compiler, and a program that finds
# that one first crashes in it.
target_link_options(hkt_torch INTERFACE "$<BUILD_INTERFACE:-Wl,--push-state,--no-as-needed,-lstdc++,--pop-state>")
endif()
