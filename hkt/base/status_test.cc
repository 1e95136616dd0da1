#include "hkt/base/status.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>
#include <thread>

namespace hkt {
namespace {

// What a status line that is at half writes to stderr when that is `descriptor`.
std::string Written(int descriptor, int reader, bool show) {
  std::fflush(stderr);
  const int old = ::dup(STDERR_FILENO);
  ::dup2(descriptor, STDERR_FILENO);
  ShowStatus(show);
  {
    StatusLine line("reading x");
    line.Update(0.1);  // too early for a line
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    line.Update(0.5);
  }
  ShowStatus(false);
  std::fflush(stderr);
  ::dup2(old, STDERR_FILENO);
  ::close(old);
  std::string text;
  pollfd ready{reader, POLLIN, 0};
  while (::poll(&ready, 1, 100) > 0 && (ready.revents & POLLIN) != 0) {
    char block[256];
    const ssize_t got = ::read(reader, block, sizeof block);
    if (got <= 0) break;
    text.append(block, static_cast<size_t>(got));
  }
  return text;
}

TEST(StatusTest, OnATerminalAndWhenAskedForOnly) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(::grantpt(terminal), 0);
  ASSERT_EQ(::unlockpt(terminal), 0);
  const int user = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY);
  ASSERT_GE(user, 0);
  EXPECT_EQ(Written(user, terminal, false), "");
  EXPECT_EQ(Written(user, terminal, true), "\r\033[Kreading x: 50 %\r\033[K")
      << "removed at the end";
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(Written(ends[1], ends[0], true), "") << "no terminal";
  for (int descriptor : {terminal, user, ends[0], ends[1]}) ::close(descriptor);
}

}  // namespace
}  // namespace hkt
