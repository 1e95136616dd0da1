#pragma once

namespace hkt {

// The value of a switch in the environment: 1 is on, 0 off, unset (or empty) `standard`. Anything
// else throws Error with the name, what it holds and what it may hold: a switch that is misspelt
// must not silently stay as it was.
bool EnvironmentSwitch(const char* name, bool standard);

}  // namespace hkt
