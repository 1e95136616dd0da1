#pragma once

#include <string>
#include <vector>

namespace hkt::data {

// What goes into an archive of the tests.
struct Member {
  std::string path;
  std::string bytes;
  enum Kind { kFile, kFolder, kSymbolicLink, kHardLink } kind = kFile;
};

enum class Compression { kNone, kGzip, kBzip2, kXz };

void WriteArchive(const std::string& path, const std::vector<Member>& members,
                  Compression compression);

// A small data set in the authors' layout, members in no order, `each` reviews a class and part.
// The review train/pos/ID_9.txt holds "train pos ID".
std::vector<Member> SmallImdb(int each);

// Small CIFAR-10 in the authors' layout: `each` records a class and batch, members in no order.
std::vector<Member> SmallCifar10(int each);

// One record: the label, then the planes, pixel i of channel c = (7 * i + 31 * c + key) % 256.
std::string Cifar10Record(int label, int key);

}  // namespace hkt::data
