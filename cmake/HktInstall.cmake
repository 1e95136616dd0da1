# cmake --install and find_package(hkt): the libraries as hkt::<room>, the headers, the program. LibTorch is not installed
# along; hktConfig.cmake finds the one that hkt was built with.
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/hkt")

get_property(libraries GLOBAL PROPERTY HKT_LIBRARIES)
list(REMOVE_ITEM libraries hkt_testing hkt_kernels_reference hkt_bench)  # tests' and the program's own
foreach(library IN LISTS libraries)
  string(REPLACE "hkt_" "" room ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${room})
endforeach()
set_target_properties(hkt_flags PROPERTIES EXPORT_NAME flags)
target_include_directories(hkt_flags INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
set(exported hkt_flags ${libraries})
if(TARGET hkt_torch)
  set_target_properties(hkt_torch PROPERTIES EXPORT_NAME torch)
  list(APPEND exported hkt_torch)
endif()
set(rpath "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}" "$ORIGIN" "${HKT_TORCH_LIB_DIR}")
foreach(target IN ITEMS hkt hkt_ops)
  if(TARGET ${target})
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "${rpath}")
  endif()
endforeach()

install(TARGETS ${exported} EXPORT hktTargets)
if(TARGET hkt)
  install(TARGETS hkt)
endif()
install(DIRECTORY hkt/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/hkt" FILES_MATCHING PATTERN "*.h"
        PATTERN "*_test_util.h" EXCLUDE PATTERN "testing" EXCLUDE PATTERN "reference" EXCLUDE)
install(EXPORT hktTargets NAMESPACE hkt:: DESTINATION "${package_dir}")
set(HKT_HAS_DATA OFF)
if(TARGET hkt_data)
  set(HKT_HAS_DATA ON)
endif()
configure_package_config_file(cmake/hktConfig.cmake.in "${CMAKE_BINARY_DIR}/hktConfig.cmake"
                              INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${CMAKE_BINARY_DIR}/hktConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/hktConfig.cmake" "${CMAKE_BINARY_DIR}/hktConfigVersion.cmake" cmake/HktTorch.cmake
        scripts/find_torch.sh DESTINATION "${package_dir}")
if(TARGET hkt_ops)
  install(FILES "${CMAKE_BINARY_DIR}/libhkt_ops.json" DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
