#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hkt/data/dataset.h"
#include "hkt/data/task.h"

// The Large Movie Review Dataset (Maas et al. 2011) as bytes:
// aclImdb/{train,test}/{neg,pos}/ID_RATING.txt, straight from the authors' archive or from its
// unpacked folder. Label 0 is neg, 1 is pos. A text's bytes are taken as they are
// (<br />, UTF-8 accents, CR LF), id = byte + 1. A review without a byte is a sequence of length 0,
// not an error.

namespace hkt::data::imdb {

inline constexpr int64_t kSeqLen = 1024;  // by default

// In order of path, whatever the order in the archive. Validation is a tenth of train, of each
// label, drawn by data_seed; of test not one byte is kept unless it is asked for. Error that names
// the file and what is wrong: see ReadArchive, and a class without reviews, a file in a class
// folder that is not called ID_RATING.txt, a review that is there twice.
std::map<Split, Dataset> Read(const std::string& path, int64_t seq_len, uint64_t data_seed,
                              const std::set<Split>& splits);

// The folders of the unpacked data that a split comes from, for the cache.
std::vector<std::filesystem::path> Folders(const std::string& folder, Split split);

}  // namespace hkt::data::imdb
