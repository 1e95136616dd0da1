#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <string>

namespace hkt::nn {

// A module that is only a name: its children are "query.0", "downsample.1", …, from any first
// index, and whoever owns it keeps them typed beside it (torch::nn::ModuleList starts at 0 and
// forgets the types).
class GroupImpl : public torch::nn::Module {};
TORCH_MODULE(Group);

// Registers `child` as owner.index and hands it back.
template <class Holder>
Holder Enter(Group& group, int64_t index, Holder child) {
  return group->register_module(std::to_string(index), std::move(child));
}

}  // namespace hkt::nn
