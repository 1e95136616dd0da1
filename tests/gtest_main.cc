// main() of every test program. Exit status 77, which ctest shows as "skipped", only when nothing
// failed and nothing ran: a skipped test beside a failed one must not hide it.

#include <gtest/gtest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  // No test reads or writes the user's cache of data.
  setenv("HKT_CACHE", "0", /*overwrite=*/1);
  testing::InitGoogleTest(&argc, argv);
  const int status = RUN_ALL_TESTS();
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  const bool nothing_ran = tests.successful_test_count() == 0 && tests.skipped_test_count() > 0;
  return status == 0 && nothing_ran ? 77 : status;
}
