#include "hkt/base/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "hkt/base/error.h"

namespace hkt {
namespace {

constexpr char kName[] = "HKT_ENVIRONMENT_TEST";

TEST(EnvironmentTest, OneIsOnZeroIsOffNothingIsTheStandard) {
  for (const bool standard : {false, true}) {
    unsetenv(kName);
    EXPECT_EQ(EnvironmentSwitch(kName, standard), standard);
    setenv(kName, "", 1);
    EXPECT_EQ(EnvironmentSwitch(kName, standard), standard);
    setenv(kName, "1", 1);
    EXPECT_TRUE(EnvironmentSwitch(kName, standard));
    setenv(kName, "0", 1);
    EXPECT_FALSE(EnvironmentSwitch(kName, standard));
  }
}

TEST(EnvironmentTest, AnythingElseIsAnError) {
  for (const char* value : {"off", "true", "2", " 1", "no"}) {
    setenv(kName, value, 1);
    EXPECT_THAT([] { EnvironmentSwitch(kName, true); },
                ::testing::ThrowsMessage<Error>(::testing::HasSubstr(
                    Concat("HKT_ENVIRONMENT_TEST is '", value, "'; it must be 1 (on) or 0"))));
  }
}

}  // namespace
}  // namespace hkt
