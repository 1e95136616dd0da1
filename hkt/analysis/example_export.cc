// The chosen example's matrices as files: safetensors for programs, CSV for everything else.

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "hkt/analysis/example.h"
#include "hkt/base/error.h"
#include "hkt/base/version.h"
#include "hkt/io/config_json.h"
#include "hkt/io/file.h"
#include "hkt/train/weights.h"

namespace hkt::analysis {
namespace {

constexpr int64_t kRows = 256;          // computed at a time
constexpr double kMostBytes = 1 << 30;  // of all matrices together

void WriteCsv(const std::filesystem::path& path, const at::Tensor& matrix) {
  io::AtomicFile file(path);
  const float* data = matrix.const_data_ptr<float>();
  std::string line;
  for (int64_t r = 0; r < matrix.size(0); ++r) {
    line.clear();
    for (int64_t c = 0; c < matrix.size(1); ++c) {
      char number[32];
      std::snprintf(number, sizeof(number), "%s%.7g", c > 0 ? "," : "",
                    static_cast<double>(*data++));
      line += number;
    }
    line += '\n';
    file.Write(line);
  }
  file.Commit();
}

// All heads of one kind of matrix, float32 [H, n, n].
template <class Rows>
at::Tensor Assemble(int64_t H, int64_t n, const Rows& rows) {
  at::Tensor whole = at::empty({H, n, n}, at::kFloat);
  for (int64_t begin = 0; begin < n; begin += kRows) {
    const int64_t end = std::min(n, begin + kRows);
    whole.slice(1, begin, end).copy_(rows(begin, end));
  }
  return whole;
}

double Bytes(const Layer& layer, const std::vector<at::Tensor>& levels) {
  double pairs = 0;
  for (size_t l = 0; l <= levels.size(); ++l) {  // once more for the attention
    const auto n = static_cast<double>(levels[l == 0 ? 0 : l - 1].size(0));
    pairs += n * n;
  }
  return 4.0 * static_cast<double>(layer.H) * pairs;
}

}  // namespace

std::vector<std::string> ExportExample(const AnalysisRun& run, const std::vector<Layer>& layers,
                                       const Example& example, const std::string& folder) {
  io::CreateFolders(folder);
  const std::filesystem::path root(folder);
  std::vector<std::string> names = {"example.safetensors"};
  train::NamedTensors tensors;
  const auto sequence_of = [&](const SequenceCapture& sequence) {
    double bytes = 0;
    for (size_t i = 0; i < layers.size(); ++i)
      bytes += Bytes(layers[i], Pyramid(layers[i], sequence.inputs[i]).x);
    Check(bytes <= kMostBytes, "the matrices of a sequence of ", sequence.length, " tokens take ",
          bytes / kMostBytes, " GiB, more than 1; choose a shorter one with --example");
    const int64_t channels = example.alone.channels;
    at::Tensor tokens = at::empty({sequence.length * channels}, at::kLong);
    const auto ids = example.alone.sequence(0);
    std::copy(ids.begin(), ids.end(), tokens.mutable_data_ptr<int64_t>());
    tensors.emplace_back("tokens",
                         channels > 1 ? tokens.view({sequence.length, channels}) : tokens);
    for (size_t i = 0; i < layers.size(); ++i) {
      const Layer& layer = layers[i];
      const SequenceLevels levels = Pyramid(layer, sequence.inputs[i]);
      const auto add = [&](const std::string& kind, const at::Tensor& matrices) {
        for (int64_t h = 0; h < layer.H; ++h) {
          tensors.emplace_back(Concat("layer.", i, ".head.", h, ".", kind), matrices[h]);
          names.push_back(Concat("layer-", i, "-head-", h, "-", kind, ".csv"));
          WriteCsv(root / names.back(), matrices[h]);
        }
      };
      add("attention", Assemble(layer.H, sequence.length, [&](int64_t begin, int64_t end) {
            return AttentionRows(layer, levels.x, begin, end);
          }));
      for (int64_t l = 0; l < layer.L; ++l) {
        add(Concat("level-", l), Assemble(layer.H, levels.x[static_cast<size_t>(l)].size(0),
                                          [&](int64_t begin, int64_t end) {
                                            return LevelRows(layer, l, levels.x, begin, end);
                                          }));
      }
    }
  };
  VisitSequences(run.trained.model, example.alone, std::vector<int64_t>{0}, sequence_of);
  train::TensorPack pack;
  pack.Add("", tensors);
  io::WriteSafetensors(root / names.front(), pack.views(),
                       {{io::kVersionKey, std::string(Version())},
                        {"example", example.index ? std::to_string(*example.index) : "text"}});
  return names;
}

}  // namespace hkt::analysis
