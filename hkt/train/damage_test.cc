// Every file of a run folder, cut short and with flipped bits, against resuming, evaluating and
// predicting: one clear error or a right result, never another exception, a crash or a hang; and
// damage to our safetensors is always found.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "hkt/base/error.h"
#include "hkt/base/random.h"
#include "hkt/io/file.h"
#include "hkt/train/evaluate.h"
#include "hkt/train/predict.h"
#include "hkt/train/report.h"
#include "hkt/train/test_run_test_util.h"
#include "hkt/train/text_lines.h"

namespace hkt::train {
namespace {

constexpr int kTimes = 20;

// Without the waiting for the disk of WriteFileAtomically, which thousands of files would feel.
void Write(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

class DamageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    run_.config.train.steps = 40;
    run_.config.train.keep_states = 2;
    run_.config.train.ema = 0.9;
    run_.folder.WriteConfig(run_.config);
    run_.RunUntil(*run_.Open(), 30);
    io::WriteFileAtomically(run_.folder.evaluation(), "{\"accuracy\": 0.5}\n");
    for (const auto& entry : std::filesystem::directory_iterator(run_.folder.root()))
      whole_[entry.path()] = io::ReadFile(entry.path());
    ASSERT_EQ(whole_.size(), 7u);  // with the kept state and the event file
  }

  void Restore() {
    for (const auto& entry : std::filesystem::directory_iterator(run_.folder.root()))
      std::filesystem::remove(entry.path());
    for (const auto& [path, content] : whole_) Write(path, content);
    run_.recorder.warnings.clear();
  }

  // The message of the one Error that came, empty when none did. Anything else that is thrown fails
  // the test.
  template <class Job>
  std::string ErrorOf(Job job) {
    try {
      job();
    } catch (const Error& error) {
      EXPECT_FALSE(std::string(error.what()).empty());
      return error.what();
    }
    return "";
  }

  std::string Resume() {
    return ErrorOf([&] {
      const Config config = run_.folder.ReadConfig();
      Trainer trainer(run_.folder, config, run_.task, run_.train, run_.validation, &run_.recorder);
      trainer.Resume();
      int64_t left = 3;  // a step or two and a save
      trainer.Run([&] { return left-- == 0; });
    });
  }

  std::string Evaluation() {
    return ErrorOf([&] {
      const TrainedModel trained = LoadTrained(run_.folder);
      const auto evaluation = Evaluate(trained.model, run_.validation, 4);
      ClassificationReport(trained.task, run_.validation, evaluation->predicted);
    });
  }

  std::string Prediction() {
    return ErrorOf([&] {
      const Predictor predictor(run_.folder);
      const auto file = run_.temporary.path() / "texts";
      Write(file, "5\n[MAX 1 2 ]\n");
      TextLines source(predictor.config().data, file);
      predictor.Predict(source, {}, [](const auto&) {});
      std::filesystem::remove(file);
    });
  }

  // The file with `damaged` as its content, through all three commands.
  void Try(const std::filesystem::path& path, const std::string& damaged, const std::string& what) {
    SCOPED_TRACE(what + " of " + path.filename().string());
    const bool state = path == run_.folder.state(), model = path == run_.folder.model();
    Restore();
    Write(path, damaged);
    const std::string evaluation = Evaluation(), prediction = Prediction();
    EXPECT_EQ(evaluation.empty(), prediction.empty());
    const std::string resumed = Resume();
    for (const std::string& message : {evaluation, prediction, resumed})
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    if (model) {
      EXPECT_NE(evaluation.find(path.string()), std::string::npos) << evaluation;
      EXPECT_EQ(resumed, "");  // the best weights are made again, and it is said
      ASSERT_FALSE(run_.recorder.warnings.empty());
      EXPECT_NE(run_.recorder.warnings[0].find(path.string()), std::string::npos);
    } else if (state) {
      EXPECT_EQ(evaluation, "");
      EXPECT_NE(resumed.find(path.string()), std::string::npos) << resumed;
      EXPECT_NE(resumed.find("--from-step 20"), std::string::npos) << resumed;
      EXPECT_EQ(io::ReadFile(run_.folder.model()), whole_.at(run_.folder.model()));
    } else if (path != run_.folder.config()) {
      EXPECT_EQ(evaluation, "");
    }
  }

  TestRun run_;
  std::map<std::filesystem::path, std::string> whole_;
};

TEST_F(DamageTest, TwentyCutsOfEveryFile) {
  Random random({11});
  for (const auto& [path, content] : whole_) {
    for (int i = 0; i < kTimes; ++i) {
      // The empty file and the one that lacks a byte are always among them.
      const size_t size = i == 0 ? 0 : i == 1 ? content.size() - 1 : random.Below(content.size());
      Try(path, content.substr(0, size), Concat("cut to ", size, " bytes"));
      // Without its last newline the configuration is whole.
      if (path == run_.folder.config() && size + 1 < content.size()) {
        EXPECT_NE(Resume(), "") << size;
      }
    }
  }
}

TEST_F(DamageTest, TwentyFlippedBitsOfEveryFile) {
  Random random({12});
  for (const auto& [path, content] : whole_) {
    for (int i = 0; i < kTimes; ++i) {
      const size_t byte = random.Below(content.size()), bit = random.Below(8);
      std::string damaged = content;
      damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << bit));
      Try(path, damaged, Concat("bit ", bit, " of byte ", byte));
    }
  }
}

// Of another program's file without a checksum damage to the numbers cannot be found: it is read.
TEST_F(DamageTest, FilesWithoutAChecksumAreRead) {
  const io::SafetensorsFile file(run_.folder.model());
  std::string content = whole_.at(run_.folder.model());
  for (const std::string key : {"hkt_checksum", "hkt_version"}) {
    const size_t at = content.find(key);
    ASSERT_NE(at, std::string::npos);
    content.replace(at, 3, "abc");  // a key of no meaning to us
  }
  content.back() = static_cast<char>(content.back() ^ 1);
  io::WriteFileAtomically(run_.folder.model(), content);
  EXPECT_EQ(Evaluation(), "");
}

}  // namespace
}  // namespace hkt::train
