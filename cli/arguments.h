#pragma once

#include <CLI/CLI.hpp>
#include <string>

// What every command's arguments have in common, whoever added them: CLI11 takes 010 for eight,
// --json=7 for true, and an empty --out for none.

namespace hkt::cli {

// The whole text as a number of type T (int64_t, uint64_t or double) and nothing else: no octal, no
// trailing letters, no blanks. UsageError that names `flag`, what was given and what it must be.
template <class T>
T ParseNumber(const std::string& flag, const std::string& text);

// Gives every option of every command below `app` its checks: numbers are numbers, nothing is
// empty, and no folder or file of safetensors is "-". After all were added.
void CheckValues(CLI::App& app);

// UsageError for a switch with another value than true or false, for an option that is given twice
// (a switch and its --no-... are one), and for --name= without a value. Before app.parse(), which
// would say less, or nothing.
void CheckArguments(CLI::App& app, int argc, char** argv);

}  // namespace hkt::cli
