#pragma once

#include <filesystem>
#include <string>
#include <vector>

// What a cache entry was made from. Hashes are XXH3 of content wherever that is a few files, so
// that neither a copied date nor a file that was replaced within a clock tick goes unnoticed.

namespace hkt::data {

// Of names (without their folder) and contents, read in blocks.
std::string HashFiles(const std::vector<std::filesystem::path>& files);

// Of the names, sizes, inodes and times (of the content's and of the last change at all, which
// programs cannot set) of all plain files below these folders: for tens of thousands of small
// files.
std::string HashListing(const std::vector<std::filesystem::path>& folders);

}  // namespace hkt::data
