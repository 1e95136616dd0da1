// What must not change a bit of the attention kernels' results, forward and backward: the other
// sequences of a batch, more padding, the number of workers and how they run, and running again.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "hkt/base/dims.h"
#include "hkt/base/error.h"
#include "hkt/kernels/attention_test_util.h"
#include "hkt/kernels/targets.h"

namespace hkt::kernels {
namespace {

using Body = std::function<void(int64_t)>;

// Ways to run workers: one after the other, the last first, and at once.
void InOrder(int64_t workers, const Body& body) {
  for (int64_t worker = 0; worker < workers; ++worker) body(worker);
}
void Reversed(int64_t workers, const Body& body) {
  for (int64_t worker = workers - 1; worker >= 0; --worker) body(worker);
}
void Threads(int64_t workers, const Body& body) {
  std::vector<std::thread> threads;
  for (int64_t worker = 0; worker < workers; ++worker) threads.emplace_back(body, worker);
  for (std::thread& thread : threads) thread.join();
}

// Cases in which there is something to share out: several heads, tiles, levels, lengths.
std::vector<AttentionCase> Cases() {
  return {{.shape = {.B = 2, .H = 4, .Hkv = 2, .T = 37, .D = 8, .Dv = 8, .L = 3}},
          {.shape = {.B = 1, .H = 1, .Hkv = 1, .T = 513, .D = 8, .Dv = 8, .L = 3}},
          {.shape = {.B = 3, .H = 2, .Hkv = 1, .T = 260, .D = 5, .Dv = 9, .L = 2, .s = 3},
           .causal = false,
           .lengths = {260, 0, 97}},
          {.shape = {.B = 2, .H = 6, .Hkv = 2, .T = 200, .D = 3, .Dv = 4, .L = 4},
           .lengths = {199, 130},
           .element = testing::Element::kBFloat16}};
}

TEST(AttentionBitwiseTest, WorkersChangeNoBit) {
  for (const AttentionCase& c : Cases()) {
    const AttentionTensors x = MakeTensors(c);
    ForEachTargetAndPoison([&] {
      SCOPED_TRACE(c.ToString());
      const Parts want = RunKernels(c, x);
      for (const int64_t workers : {1, 2, 3, 7, 500}) {
        for (const auto& [name, run] :
             {std::pair<const char*, decltype(&InOrder)>{"in order", InOrder},
              {"reversed", Reversed},
              {"threads", Threads}}) {
          // Poisoning takes longer than the kernels do; what one worker alone reads of it the first
          // run has shown.
          if (ScratchPoison() && !(workers == 3 && run == &Threads)) continue;
          SCOPED_TRACE(Concat(workers, " workers, ", name));
          ExpectSameBits(RunKernels(c, x, {workers, run}), want);
        }
      }
    });
    if (HasFailure()) return;
  }
}

// So many heads that their packed copies and sums are made in several waves.
TEST(AttentionBitwiseTest, WorkersChangeNoBitOfManyHeads) {
  const AttentionCase c{.shape = {.B = 16, .H = 64, .Hkv = 16, .T = 3, .D = 130, .Dv = 2, .L = 6},
                        .lengths = {3, 2, 1, 0, 3, 1, 2, 3, 3, 3, 2, 1, 0, 3, 1, 2}};
  const AttentionTensors x = MakeTensors(c);
  ForEachTarget([&] {
    const Parts want = RunKernels(c, x);
    ExpectSameBits(RunKernels(c, x, {3, Threads}), want);
    ExpectSameBits(RunKernels(c, x, {7, Reversed}), want);
  });
}

// Long sequences and all but empty ones in turn: while one worker is at the last block of a long
// one, another is soon two sequences further, and must not reuse memory that the first still reads.
TEST(AttentionBitwiseTest, AWorkerThatRunsAheadChangesNoBit) {
  for (const bool causal : {true, false}) {
    const AttentionCase c{.shape = {.B = 5, .T = 300, .D = 112, .Dv = 112, .L = 2},
                          .causal = causal,
                          .lengths = {300, 1, 300, 0, 300}};
    const AttentionTensors x = MakeTensors(c);
    ForEachTarget([&] {
      SCOPED_TRACE(c.ToString());
      const Parts want = RunKernels(c, x);
      for (int i = 0; i < 3; ++i) ExpectSameBits(RunKernels(c, x, {2, Threads}), want);
    });
    if (HasFailure()) return;
  }
}

// Each worker is called once, in both directions, with an index below their number; a kernel may
// ask for fewer workers, not for more.
TEST(AttentionBitwiseTest, WorkersAreCalledAsPromised) {
  const AttentionCase c = Cases()[0];
  const AttentionTensors x = MakeTensors(c);
  ForEachTarget([&] {
    std::atomic<int64_t> runs = 0;
    RunKernels(c, x, {3, [&](int64_t workers, const Body& body) {
                        ++runs;
                        EXPECT_GE(workers, 1);
                        EXPECT_LE(workers, 3);
                        Reversed(workers, body);
                      }});
    EXPECT_GE(runs, 2) << "the forward and the backward both run in what they are given";
  });
}

TEST(AttentionBitwiseTest, TwiceChangesNoBit) {
  for (const AttentionCase& c : Cases()) {
    const AttentionTensors x = MakeTensors(c);
    ForEachTarget([&] {
      SCOPED_TRACE(c.ToString());
      const Parts want = RunKernels(c, x, {2, Threads});
      for (int i = 0; i < 3; ++i) ExpectSameBits(RunKernels(c, x, {2, Threads}), want);
    });
    if (HasFailure()) return;
  }
}

// Rows [0, rows) of sequence b of an operand [B, H, T, D].
std::vector<double> Cut(const testing::Operand& x, const AttentionCase& c, int64_t H, int64_t D,
                        int64_t l, int64_t b, int64_t rows) {
  const std::vector<double> all = x.Get();
  const int64_t Tl = LevelLength(c.shape.T, c.shape.s, l);
  std::vector<double> cut;
  for (int64_t h = 0; h < H; ++h) {
    const auto begin = all.begin() + (b * H + h) * Tl * D;
    cut.insert(cut.end(), begin, begin + rows * D);
  }
  return cut;
}

// The case of sequence b of `c` alone, over its first T tokens.
std::pair<AttentionCase, AttentionTensors> Alone(const AttentionCase& c, const AttentionTensors& x,
                                                 int64_t b, int64_t T, bool with_length) {
  AttentionCase alone = c;
  alone.shape.B = 1;
  alone.shape.T = T;
  alone.lengths = with_length ? std::vector<int64_t>{c.Length(b)} : std::vector<int64_t>{};
  AttentionTensors tensors = MakeTensors(alone);
  const auto& s = c.shape;
  for (int64_t l = 0; l < s.L; ++l) {
    const int64_t rows = LevelLength(T, s.s, l);
    tensors.queries[l].Set(Cut(x.queries[l], c, s.H, s.D, l, b, rows));
    tensors.keys[l].Set(Cut(x.keys[l], c, s.Hkv, s.D, l, b, rows));
  }
  tensors.value.Set(Cut(x.value, c, s.Hkv, s.Dv, 0, b, T));
  tensors.d_out.Set(Cut(x.d_out, c, s.H, s.Dv, 0, b, T));
  return {alone, std::move(tensors)};
}

// A sequence alone, as it lies in a batch of 7; and cut to its own length, without any padding.
TEST(AttentionBitwiseTest, ABatchAndPaddingChangeNoBit) {
  struct Batch {
    int64_t T;
    std::vector<int64_t> lengths;
  };
  for (const auto& [T, lengths] : {Batch{70, {1, 70, 33, 64, 2, 69, 17}},
                                   {300, {300, 97, 255, 129, 1, 192, 200}},
                                   {530, {513, 96, 256, 128, 5, 193, 384}}}) {
    for (const bool causal : {true, false}) {
      if (!causal && T > 300) continue;
      const AttentionCase c{.shape = {.B = 7, .H = 2, .Hkv = 1, .T = T, .D = 6, .Dv = 5, .L = 3},
                            .causal = causal,
                            .lengths = lengths};
      const AttentionTensors x = MakeTensors(c);
      ForEachTarget([&] {
        const Parts batch = RunKernels(c, x, {3, InOrder});
        for (int64_t b = 0; b < 7; ++b) {
          const int64_t n = lengths[b];
          SCOPED_TRACE(Concat(c.ToString(), " sequence ", b));
          for (const int64_t tokens : {T, n, (n + T) / 2}) {
            SCOPED_TRACE(Concat("alone, ", tokens, " tokens"));
            const auto& [alone, tensors] = Alone(c, x, b, tokens, tokens > n);
            const Parts got = RunKernels(alone, tensors);
            ExpectSameBits(FirstTokens(alone, got, 0, n), FirstTokens(c, batch, b, n));
          }
        }
      });
      if (HasFailure()) return;
    }
  }
}

// Where the operands lie changes no bit either. At some widths a kernel may sum in place where the
// output has columns side by side, and not where it has not.
TEST(AttentionBitwiseTest, LayoutsChangeNoBit) {
  for (const int64_t D : {1, 16, 20, 48}) {
    for (const int64_t T : {131, 300}) {
      if (T == 300 && D != 16) continue;
      const AttentionCase c{.shape = {.B = 2, .H = 4, .Hkv = 2, .T = T, .D = D, .Dv = 9, .L = 3},
                            .lengths = {T, T - 9}};
      const AttentionTensors x = MakeTensors(c);
      ForEachTarget([&] {
        const Parts want = RunKernels(c, x);
        for (int i = 0; i < testing::kOutputLayouts; ++i) {
          AttentionCase other = c;
          other.layouts = other.out_layouts = std::vector<testing::Layout>(4, testing::kLayouts[i]);
          SCOPED_TRACE(other.ToString());
          ExpectSameBits(RunKernels(other, MakeTensors(other)), want);
        }
      });
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace hkt::kernels
