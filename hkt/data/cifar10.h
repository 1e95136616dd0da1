#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "hkt/data/dataset.h"
#include "hkt/data/loader.h"
#include "hkt/data/task.h"

// CIFAR-10 (Krizhevsky 2009) as sequences of 1024 pixels, row by row, from the binary version:
// cifar-10-batches-bin/{data_batch_1 ... data_batch_5, test_batch}.bin, the authors' archive or its
// unpacked folder. A record is a label byte 0 ... 9 and 3072 bytes: the red, the green and the blue
// plane, each 32 x 32.
//
// Grey: id = grey value + 1, so that black is the id 1 and no padding. rgb: three channels a step
// (Dataset::channels = 3), the bytes 0 ... 255 as they are. An image always has 1024 steps.

namespace hkt::data::cifar10 {

inline constexpr int64_t kVocabulary = 257;
inline constexpr int64_t kChannels = 3;
inline constexpr int64_t kSide = 32, kSeqLen = kSide * kSide;
inline constexpr int64_t kImageBytes = kChannels * kSeqLen, kRecordBytes = 1 + kImageBytes;
inline constexpr std::array<std::string_view, 10> kClasses = {
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};

// Pillow's integers for ITU-R 601-2 luma; by floats some values differ by one.
constexpr uint8_t Grey(uint8_t red, uint8_t green, uint8_t blue) {
  return static_cast<uint8_t>((19595u * red + 38470u * green + 7471u * blue + 32768u) >> 16);
}

// Whole records. Error, naming `name`: no record, a rest, a label above 9.
Dataset ParseRecords(std::string_view bytes, const std::string& name, bool rgb);

// Records with or without their label byte: whichever the number of bytes is a multiple of (where
// both fit: with, if every label is 0 ... 9). Without, the labels are 0. Error where neither fits.
Dataset ParseImages(std::string_view bytes, const std::string& name, bool rgb);

// 45,000 / 5,000 / 10,000 images of the real files: validation is a tenth of the five batches, of
// each label, drawn by data_seed; the test file is read only when asked for. Error that names the
// file: see ReadArchive and ParseRecords, and a batch that is missing, there twice, or of another
// number of records than the others.
std::map<Split, Dataset> Read(const std::string& path, bool rgb, uint64_t data_seed,
                              const std::set<Split>& splits);

// The files of the unpacked data that a split comes from, for the cache.
std::vector<std::filesystem::path> Files(const std::string& folder, Split split);

// Shifts every image by -4 ... 4 pixels in both directions (black comes in) and mirrors every
// second one, by Random({seed, kAugmentStream, epoch, index}): the same image in the same epoch is
// always changed in the same way. Error for a batch that holds no images.
void Augment(Batch& batch, uint64_t seed, int64_t epoch);

}  // namespace hkt::data::cifar10
