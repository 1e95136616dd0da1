#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

// Every option that a run depends on, each listed once, in Visit. Flags, JSON, --help, checks and
// the run folder are visitors of that list. A visitor is called as
//   visitor(std::string_view name, T& value, std::string_view help, const Limits& limits)
// with T one of bool, int64_t, double, std::string, std::optional<int64_t>, std::optional<bool>.
// Names are snake_case; the flag is the same with dashes.

namespace hkt {

struct Limits {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool above_min = false;         // the minimum itself is not allowed
  std::string_view choices = {};  // "a|b|c" for strings; empty: any
};

constexpr int64_t kMaxBatch = 1 << 16;
constexpr int64_t kMaxStepSamples = 1 << 20;  // batch times accumulate
constexpr double kMaxEma = 0.999999;          // at 1 the average would stay at the start

constexpr Limits AtLeast(double min) { return {.min = min}; }
constexpr Limits Above(double min) { return {.min = min, .above_min = true}; }
constexpr Limits Between(double min, double max) { return {.min = min, .max = max}; }
constexpr Limits OneOf(std::string_view choices) { return {.choices = choices}; }

struct DataConfig {
  std::string task = "listops";
  std::string data;
  std::string preset = "short";
  std::optional<int64_t> seq_len;
  int64_t data_seed = 1;
  bool rgb = false;

  template <class Self, class Visitor>
  static void Visit(Self& c, Visitor&& v) {
    v("task", c.task, "what to learn", OneOf("listops|cifar10|imdb|text"));
    v("data", c.data,
      "archive or folder of the data; text: a file or a folder of files; ListOps: a folder made by "
      "'hkt data make' (none: generated in memory)",
      Limits{});
    v("preset", c.preset, "ListOps generator: tiny (16-96 tokens), short (30-512), lra (501-1999)",
      OneOf("tiny|short|lra"));
    v("seq_len", c.seq_len,
      "longest sequence in tokens; longer ones are cut and counted (default: as the task says)",
      Between(1, 1 << 20));
    v("data_seed", c.data_seed, "seed of generated data and of the splits that are drawn",
      AtLeast(0));
    v("rgb", c.rgb, "cifar10: three channels a step through a linear map instead of grey tokens",
      Limits{});
  }
};

struct ModelConfig {
  std::string model = "hkt";
  std::optional<int64_t> levels;
  int64_t stride = 2;
  int64_t kernel_size = 3;
  std::optional<bool> hybrid;
  bool psd = false;
  bool bidirectional = false;
  bool rotary = false;
  bool bias = false;
  double score_gain = 1.0;
  std::string fusion = "learned";
  double gate_start = 2;
  std::string downsample = "conv";
  bool undecimated = false;
  int64_t d_model = 64;
  int64_t heads = 2;
  std::optional<int64_t> kv_heads;
  int64_t layers = 2;
  int64_t d_ff = 128;
  double dropout = 0.1;

  template <class Self, class Visitor>
  static void Visit(Self& c, Visitor&& v) {
    v("model", c.model,
      "hkt (3 levels, gates), hkt-fusion (3 levels, no gates), mha (1 level, no gates), mha-conv "
      "(1 level, gates), "
      "mha-wide (mha with a feed-forward widened to hkt's number of parameters)",
      OneOf("hkt|hkt-fusion|mha|mha-conv|mha-wide"));
    v("levels", c.levels, "resolutions L (default: as the model says)", Between(1, 16));
    v("stride", c.stride, "downsampling stride s between levels", Between(2, 1024));
    v("kernel_size", c.kernel_size, "width k of the causal convolutions", Between(1, 1024));
    v("hybrid", c.hybrid,
      "gates that let a level be a causal convolution (default: as the model says)", Limits{});
    v("psd", c.psd, "key projections equal query projections: a positive semidefinite kernel",
      Limits{});
    v("bidirectional", c.bidirectional, "attention without the causal mask", Limits{});
    v("rotary", c.rotary, "rotary positions instead of learned ones", Limits{});
    v("bias", c.bias, "biases in the query, key and value projections", Limits{});
    v("score_gain", c.score_gain,
      "factor on the fused score; sqrt(L), 1.732 at L = 3, gives the start the variance of one "
      "level",
      Above(0));
    v("fusion", c.fusion,
      "level weights: learned; uniform, 1/L with nothing to learn; frozen, a random start that is "
      "kept",
      OneOf("learned|uniform|frozen"));
    v("gate_start", c.gate_start, "gate logits at the start; 0: half attention, half convolution",
      Between(-100, 100));
    v("downsample", c.downsample,
      "coarse levels: conv, by a strided convolution; pick, every s-th position as it is",
      OneOf("conv|pick"));
    v("undecimated", c.undecimated,
      "all levels at full length, their convolutions dilated: the hierarchy without downsampling",
      Limits{});
    v("d_model", c.d_model, "model width", Between(1, 1 << 16));
    v("heads", c.heads, "query heads", Between(1, 4096));
    v("kv_heads", c.kv_heads, "key and value heads, a divisor of heads (default: heads)",
      Between(1, 4096));
    v("layers", c.layers, "transformer blocks", Between(1, 1024));
    v("d_ff", c.d_ff, "feed-forward width (mha-wide: before it is widened)", Between(1, 1 << 20));
    v("dropout", c.dropout, "on embeddings, attention output and feed-forward",
      Limits{.min = 0, .max = 0.99});
  }
};

struct TrainConfig {
  int64_t batch = 32;
  int64_t accumulate = 1;
  int64_t steps = 1000;
  double lr = 1e-3;
  double fusion_lr_scale = 1.0;
  double weight_decay = 0.01;
  double warmup = 0.05;
  std::string schedule = "cosine";
  double clip = 1.0;
  int64_t seed = 1;
  bool augment = false;
  int64_t eval_every = 200;
  int64_t save_every = 200;
  int64_t log_every = 20;
  double max_time = 0;
  int64_t patience = 0;
  int64_t keep_states = 1;
  double ema = 0;
  bool overfit_batch = false;
  bool tensorboard = true;
  int64_t threads = 0;

  template <class Self, class Visitor>
  static void Visit(Self& c, Visitor&& v) {
    v("batch", c.batch, "sequences a batch", Between(1, kMaxBatch));
    v("accumulate", c.accumulate, "batches a step, weighted by their samples",
      Between(1, kMaxBatch));
    v("steps", c.steps, "optimizer steps", AtLeast(1));
    v("lr", c.lr, "peak learning rate of AdamW", Above(0));
    v("fusion_lr_scale", c.fusion_lr_scale, "factor on the rate of level and gate logits",
      AtLeast(0));
    v("weight_decay", c.weight_decay,
      "decoupled decay; none on norms, biases, level and gate logits", AtLeast(0));
    v("warmup", c.warmup,
      "linear warm-up: below 1 a share of the steps, from 1 on a number of steps", AtLeast(0));
    v("schedule", c.schedule, "learning rate after the warm-up",
      OneOf("cosine|linear|rsqrt|constant"));
    v("clip", c.clip, "largest global gradient norm; 0: no clipping", AtLeast(0));
    v("seed", c.seed, "seed of weights, order, dropout and augmentation", AtLeast(0));
    v("augment", c.augment,
      "cifar10: training images are shifted by up to 4 pixels and flipped at random", Limits{});
    v("eval_every", c.eval_every,
      "steps between evaluations on the validation split; 0: only at the end", AtLeast(0));
    v("save_every", c.save_every, "steps between saves of the state; 0: only at the end",
      AtLeast(0));
    v("log_every", c.log_every, "steps between lines in metrics.jsonl; 0: none", AtLeast(0));
    v("max_time", c.max_time, "seconds after which to save and leave; 0: no limit", AtLeast(0));
    v("patience", c.patience,
      "evaluations in a row without a better one after which to end; 0: train all steps",
      AtLeast(0));
    v("keep_states", c.keep_states,
      "saved states to keep: state.safetensors and the ones before it, state-<step>.safetensors",
      Between(1, 10000));
    v("ema", c.ema,
      "decay of the moving average of the weights that is evaluated and kept; 0: the weights "
      "themselves",
      Between(0, kMaxEma));
    v("overfit_batch", c.overfit_batch,
      "for debugging: train on the first step's sequences alone, and evaluate on them", Limits{});
    v("tensorboard", c.tensorboard, "event files for TensorBoard in the run folder", Limits{});
    v("threads", c.threads, "threads; 0: PyTorch's own choice", Between(0, 4096));
  }
};

struct Config {
  DataConfig data;
  ModelConfig model;
  TrainConfig train;

  template <class Self, class Visitor>
  static void Visit(Self& c, Visitor&& v) {
    DataConfig::Visit(c.data, v);
    ModelConfig::Visit(c.model, v);
    TrainConfig::Visit(c.train, v);
  }
};

// Checks every field against its limits and the fields against each other, and fills what the model
// name decides: levels, hybrid and kv_heads have values afterwards. Resolving twice changes
// nothing. Throws UsageError that names every field at fault, what it holds and what it may hold.
void Resolve(Config& config);

}  // namespace hkt
