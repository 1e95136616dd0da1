#include "hkt/data/archive_test_util.h"

#include <archive.h>
#include <archive_entry.h>

#include <cstdlib>
#include <fstream>
#include <memory>

#include "hkt/base/error.h"
#include "hkt/base/random.h"

namespace hkt::data {

namespace fs = std::filesystem;

FolderTest::FolderTest() {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  folder_ = fs::path(testing::TempDir()) / Concat("hkt_", test.test_suite_name()) / test.name();
  fs::remove_all(folder_);
  fs::create_directories(folder_);
}

FolderTest::~FolderTest() { fs::remove_all(folder_); }

std::string ProblemOf(const std::function<void()>& job) {
  try {
    job();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void ArchiveFolderTest::Write(const std::vector<Member>& members) {
  WriteArchive(archive_, members, Compression::kGzip);
}

void ArchiveFolderTest::Unpack(const std::vector<Member>& members) {
  for (const Member& member : members) {
    if (member.kind != Member::kFile) continue;
    fs::create_directories((folder_ / member.path).parent_path());
    std::ofstream(folder_ / member.path, std::ios::binary) << member.bytes;
  }
}

std::string RealArchive(const std::string& name) {
  const char* folder = std::getenv("HKT_DATA");
  if (folder == nullptr) return "";
  for (const char* ending : {".tar.gz", ".tar.xz"}) {
    const fs::path path = fs::path(folder) / (name + ending);
    if (fs::exists(path)) return path.string();
  }
  ADD_FAILURE() << "no " << name << ".tar.gz or .tar.xz in HKT_DATA = " << folder;
  return "";
}

void WriteArchive(const std::string& path, const std::vector<Member>& members,
                  Compression compression) {
  struct Free {
    void operator()(archive* a) const { archive_write_free(a); }
    void operator()(archive_entry* e) const { archive_entry_free(e); }
  };
  std::unique_ptr<archive, Free> writer(archive_write_new());
  const auto require = [&](int result) {
    Check(result == ARCHIVE_OK, path, ": ", archive_error_string(writer.get()));
  };
  if (compression == Compression::kGzip) require(archive_write_add_filter_gzip(writer.get()));
  // The same members are the same bytes at any time.
  if (compression == Compression::kGzip)
    require(archive_write_set_filter_option(writer.get(), "gzip", "timestamp", nullptr));
  if (compression == Compression::kBzip2) require(archive_write_add_filter_bzip2(writer.get()));
  if (compression == Compression::kXz) require(archive_write_add_filter_xz(writer.get()));
  require(archive_write_set_format_ustar(writer.get()));
  require(archive_write_open_filename(writer.get(), path.c_str()));
  for (const Member& member : members) {
    std::unique_ptr<archive_entry, Free> entry(archive_entry_new());
    archive_entry_set_pathname(entry.get(), member.path.c_str());
    archive_entry_set_perm(entry.get(), 0644);
    archive_entry_set_filetype(entry.get(), member.kind == Member::kFolder         ? AE_IFDIR
                                            : member.kind == Member::kSymbolicLink ? AE_IFLNK
                                                                                   : AE_IFREG);
    if (member.kind == Member::kSymbolicLink)
      archive_entry_set_symlink(entry.get(), member.bytes.c_str());
    if (member.kind == Member::kHardLink)
      archive_entry_set_hardlink(entry.get(), member.bytes.c_str());
    archive_entry_set_size(
        entry.get(), member.kind == Member::kFile ? static_cast<int64_t>(member.bytes.size()) : 0);
    require(archive_write_header(writer.get(), entry.get()));
    if (member.kind != Member::kFile) continue;
    const la_ssize_t written =
        archive_write_data(writer.get(), member.bytes.data(), member.bytes.size());
    Check(written == static_cast<la_ssize_t>(member.bytes.size()), path, ": short write");
  }
  require(archive_write_close(writer.get()));
}

std::vector<Member> SmallImdb(int each) {
  std::vector<Member> members;
  for (const char* part : {"train", "test"}) {
    for (const char* label : {"neg", "pos"}) {
      members.push_back({Concat("aclImdb/", part, "/", label, "/"), "", Member::kFolder});
      for (int id = 0; id < each; ++id) {
        members.push_back(
            {Concat("aclImdb/", part, "/", label, "/", id, label[0] == 'n' ? "_2" : "_9", ".txt"),
             Concat(part, " ", label, " ", id)});
      }
    }
  }
  members.push_back({"aclImdb/README", "read me"});
  members.push_back({"aclImdb/train/unsup/0_0.txt", "without a label"});
  members.push_back({"aclImdb/train/pos/._0_9.txt", "what a file manager left"});
  Random random({1});
  random.Shuffle(members);
  return members;
}

std::string Cifar10Record(int label, int key) {
  std::string record(1, static_cast<char>(label));
  for (int c = 0; c < 3; ++c) {
    for (int i = 0; i < 1024; ++i) record += static_cast<char>((7 * i + 31 * c + key) % 256);
  }
  return record;
}

std::vector<Member> SmallCifar10(int each) {
  std::vector<Member> members = {{"cifar-10-batches-bin/", "", Member::kFolder},
                                 {"cifar-10-batches-bin/readme.html", "read me"}};
  std::string names;
  for (const char* name :
       {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}) {
    names += Concat(name, "\n");
  }
  members.push_back({"cifar-10-batches-bin/batches.meta.txt", names + "\n"});
  int key = 0;
  for (const char* file : {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4",
                           "data_batch_5", "test_batch"}) {
    std::string bytes;
    for (int i = 0; i < 10 * each; ++i) bytes += Cifar10Record(i % 10, key++);
    members.push_back({Concat("cifar-10-batches-bin/", file, ".bin"), bytes});
  }
  Random random({2});
  random.Shuffle(members);
  return members;
}

}  // namespace hkt::data
