// Micro benchmarks of hkt/kernels on every SIMD target that this processor runs: GFLOP/s of the
// register tiles, scores a second of the softmax, bytes a second of packing.
//   hkt_micro_bench --benchmark_filter=AVX2

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/micro/micro_bench.cc"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <vector>

// Which targets, then the loop over them, then what is compiled once a target.
// clang-format off
#include "hkt/kernels/targets.h"
#include <hwy/foreach_target.h>
#include "hkt/kernels/pack-inl.h"
#include "hkt/kernels/softmax-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace hkt::kernels {
namespace HWY_NAMESPACE {

constexpr int64_t kMost = 128;  // the largest head width timed

// What the loops below read and write; in L1 but for packing.
struct Buffers {
  HWY_ALIGN float a[kMost * 64], b[kMost * 64], coarse[8 * kTileLd], tile[128 * kTileLd];
};

Buffers& Data() {
  static Buffers* const buffers = [] {
    auto* made = new Buffers;
    for (float* piece : {made->a, made->b}) std::fill_n(piece, kMost * 64, 0.1F);
    std::fill_n(made->coarse, 8 * kTileLd, 0.1F);
    std::fill_n(made->tile, 128 * kTileLd, 0.1F);
    return made;
  }();
  return *buffers;
}

void CountFlops(benchmark::State& state, double flops) {
  state.counters["FLOP/s"] =
      benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

void Fma(benchmark::State& state) {
  const DF d;
  const VF x = hn::Set(d, 0.999F), y = hn::Set(d, 1e-3F);
  VF chain[12];
  HKT_UNROLL for (int i = 0; i < 12; ++i) chain[i] = hn::Set(d, static_cast<float>(i));
  for (auto _ : state) {
    for (int step = 0; step < 1000; ++step) {
      HKT_UNROLL for (int i = 0; i < 12; ++i) chain[i] = hn::MulAdd(chain[i], x, y);
    }
  }
  VF sum = chain[0];
  HKT_UNROLL for (int i = 1; i < 12; ++i) sum = hn::Add(sum, chain[i]);
  benchmark::DoNotOptimize(hn::GetLane(sum));
  CountFlops(state, 2.0 * 12 * 1000 * static_cast<double>(kLanes));
}

template <Start kStart>
void Score(benchmark::State& state) {
  Buffers& data = Data();
  const int64_t D = state.range(0);
  for (auto _ : state) {
    ScoreTile<kStart>(data.a, kRows, data.b, D, data.coarse, data.tile);
    benchmark::ClobberMemory();
  }
  CountFlops(state, 2.0 * static_cast<double>(kRows * kPanel * D));
}

void Product(benchmark::State& state) {
  Buffers& data = Data();
  const int64_t n = state.range(0);
  for (auto _ : state) {
    ProductTile<2, Sum::kAdd>(data.tile, data.b, n, nullptr, data.a, kPanel);
    benchmark::ClobberMemory();
  }
  CountFlops(state, 2.0 * static_cast<double>(kRows * kPanel * n));
}

void TransposedProduct(benchmark::State& state) {
  Buffers& data = Data();
  const int64_t n = state.range(0);
  for (auto _ : state) {
    TransposedProductTile<2>(data.tile, data.b, n, data.a);
    benchmark::ClobberMemory();
  }
  CountFlops(state, 2.0 * static_cast<double>(kRows * kPanel * n));
}

void Softmax(benchmark::State& state) {
  Buffers& data = Data();
  HWY_ALIGN float sum[kLanes];
  for (auto _ : state) {
    const float max = RowMax(data.coarse, kTileCols, -1);
    RowWeights(data.coarse, kTileCols, kTileCols, max, sum, hn::Zero(DF()));
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kTileCols);
}

void Pack(benchmark::State& state) {
  const int64_t D = state.range(0), n = kTileCols;
  std::vector<float> rows(static_cast<size_t>(n * D), 0.1F);
  std::vector<float> buffer(static_cast<size_t>(kLanes * D));
  Buffers& data = Data();
  const InputRows input = {rows.data(), D, 1, Type::kFloat32};
  for (auto _ : state) {
    PackTransposed(input, 0, n, D, 1, buffer.data(), data.tile);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * n * D * 4);
}

void Register() {
  const std::string target = hwy::TargetName(HWY_TARGET);
  const auto add = [&](const char* name, void (*run)(benchmark::State&)) {
    return benchmark::RegisterBenchmark((target + "/" + name).c_str(), run);
  };
  add("fma", Fma);
  for (const int64_t D : {32, 64, 128}) {
    add("score_tile", Score<Start::kZero>)->Arg(D);
    add("score_tile_from_coarse", Score<Start::kCoarse>)->Arg(D);
    add("pack_transposed", Pack)->Arg(D);
  }
  for (const int64_t n : {24, 96}) add("transposed_product_tile", TransposedProduct)->Arg(n);
  add("product_tile", Product)->Arg(128);
  add("softmax", Softmax);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace hkt::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hkt::kernels {

HWY_EXPORT(Register);

void RegisterAll() {
  for (const std::string& target : UsableTargets()) {
    SetTarget(target);
    HWY_DYNAMIC_DISPATCH(Register)();
  }
}

}  // namespace hkt::kernels

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  hkt::kernels::RegisterAll();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
#endif
