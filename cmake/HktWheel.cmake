# What goes into the wheel beside python/hkt: the operators and Highway's shared library. PyTorch's libraries are loaded
# already when Python loads the operators; the path to them serves tools that look at the file alone.
set_target_properties(hkt_ops PROPERTIES INSTALL_RPATH "$ORIGIN;$ORIGIN/../torch/lib")
install(TARGETS hkt_ops LIBRARY DESTINATION hkt)
install(FILES "${CMAKE_BINARY_DIR}/libhkt_ops.json" DESTINATION hkt)
find_package(hwy 1.0.3 REQUIRED)  # the target is known in its own folder only
get_target_property(highway_type hwy::hwy TYPE)
if(NOT highway_type STREQUAL "STATIC_LIBRARY")
  # Under the name that the loader asks for; a wheel holds no links.
  get_target_property(configurations hwy::hwy IMPORTED_CONFIGURATIONS)
  list(GET configurations 0 configuration)
  get_target_property(highway hwy::hwy IMPORTED_LOCATION_${configuration})
  get_target_property(soname hwy::hwy IMPORTED_SONAME_${configuration})
  file(REAL_PATH "${highway}" highway)
  install(FILES "${highway}" DESTINATION hkt RENAME "${soname}")
endif()
