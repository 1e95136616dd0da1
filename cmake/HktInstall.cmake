# install and find_package(hkt); the targets keep the names hkt::<room>.
