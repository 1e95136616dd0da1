#include "hkt/kernels/targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hkt/base/error.h"

namespace hkt::kernels {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSubsetOf;

TEST(TargetsTest, UsableOnesAreCompiledAndPortableCodeIsAmongThem) {
  EXPECT_THAT(UsableTargets(), IsSubsetOf(CompiledTargets()));
  EXPECT_THAT(UsableTargets(), Contains("SCALAR"));
  EXPECT_EQ(UsableTargets().back(), "SCALAR") << "best first";
}

TEST(TargetsTest, EveryUsableOneCanBeForcedAndGivenBack) {
  SetTarget("");
  const std::string best = ChosenTarget();
  EXPECT_EQ(best, UsableTargets().front());
  for (const std::string& name : UsableTargets()) {
    SetTarget(name);
    EXPECT_EQ(ChosenTarget(), name);
    EXPECT_EQ(UsableTargets().front(), best) << "what is usable does not depend on what is forced";
  }
  SetTarget("");
  EXPECT_EQ(ChosenTarget(), best);
}

TEST(TargetsTest, AnotherNameIsAnErrorThatListsTheUsableOnes) {
  for (const char* name : {"avx2", "SSE9", " ", "AVX2 "}) {
    EXPECT_THAT([&] { SetTarget(name); },
                ::testing::ThrowsMessage<Error>(
                    ::testing::AllOf(HasSubstr(Concat("'", name, "'")), HasSubstr("SCALAR"))));
  }
  EXPECT_EQ(ChosenTarget(), UsableTargets().front()) << "nothing was changed";
}

TEST(TargetsTest, PoisonCanBeSwitched) {
  SetScratchPoison(true);
  EXPECT_TRUE(ScratchPoison());
  SetScratchPoison(false);
  EXPECT_FALSE(ScratchPoison());
}

}  // namespace
}  // namespace hkt::kernels
