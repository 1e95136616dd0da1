#include "hkt/train/tiny_test_util.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "hkt/base/error.h"
#include "hkt/base/random.h"
#include "hkt/train/system.h"

namespace hkt::train {

Config TinyConfig() {
  SetThreads(1);  // the machine may be busy, and results are compared bit by bit
  Config config;
  config.data.preset = "tiny";
  config.model.levels = 2;
  config.model.d_model = 8;
  config.model.d_ff = 12;
  config.model.layers = 1;
  config.model.dropout = 0.2;
  config.train.batch = 4;
  config.train.lr = 3e-3;
  config.train.steps = 100;
  config.train.eval_every = 20;
  config.train.save_every = 10;
  config.train.log_every = 1;
  Resolve(config);
  return config;
}

data::Dataset TinyData(int64_t samples, uint64_t seed) {
  Random random({seed});
  data::Dataset dataset;
  for (int64_t i = 0; i < samples; ++i) {
    std::vector<uint16_t> sequence(static_cast<size_t>(random.Between(2, 12)));
    for (uint16_t& id : sequence) id = static_cast<uint16_t>(random.Between(1, 15));
    sequence[0] = static_cast<uint16_t>(random.Between(1, 10));
    dataset.Add(sequence, sequence[0] - 1);
  }
  return dataset;
}

TemporaryFolder::TemporaryFolder() {
  static int count = 0;
  path_ =
      std::filesystem::path(::testing::TempDir()) / Concat("hkt_train_", ::getpid(), "_", ++count);
  std::filesystem::create_directories(path_);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace hkt::train
