// hkt::describe: what this library is, for Python's hkt.info(). It has no tensors, so that nothing
// of PyTorch's dispatcher acts on it.

#include <torch/library.h>
#include <torch/version.h>

#include <string>
#include <vector>

#include "hkt/base/version.h"
#include "hkt/kernels/targets.h"

namespace hkt::ops {
namespace {

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

c10::Dict<std::string, std::string> Describe() {
  c10::Dict<std::string, std::string> result;
  result.insert("version", std::string(Version()));
  result.insert("commit", std::string(Commit()));
  result.insert("compiler", std::string(Compiler()));
  result.insert("torch_built_with", TORCH_VERSION);
  result.insert("target", kernels::ChosenTarget());
  result.insert("targets_usable", Joined(kernels::UsableTargets()));
  result.insert("targets_compiled", Joined(kernels::CompiledTargets()));
  return result;
}

}  // namespace

TORCH_LIBRARY_IMPL(hkt, CompositeImplicitAutograd, m) { m.impl("describe", Describe); }

}  // namespace hkt::ops
