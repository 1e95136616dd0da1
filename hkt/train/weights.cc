#include "hkt/train/weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <array>
#include <cstring>
#include <set>

#include "hkt/base/error.h"

namespace hkt::train {
namespace {

struct DtypeRow {
  io::Dtype file;
  at::ScalarType torch;
};

constexpr std::array<DtypeRow, 10> kDtypes = {{
    {io::Dtype::kBool, at::kBool},
    {io::Dtype::kU8, at::kByte},
    {io::Dtype::kI8, at::kChar},
    {io::Dtype::kI16, at::kShort},
    {io::Dtype::kF16, at::kHalf},
    {io::Dtype::kBF16, at::kBFloat16},
    {io::Dtype::kI32, at::kInt},
    {io::Dtype::kF32, at::kFloat},
    {io::Dtype::kI64, at::kLong},
    {io::Dtype::kF64, at::kDouble},
}};

io::Dtype FileDtype(at::ScalarType type) {
  for (const DtypeRow& row : kDtypes) {
    if (row.torch == type) return row.file;
  }
  Fail("tensors of type ", c10::toString(type), " cannot be written to a file");
}

std::optional<at::ScalarType> TorchDtype(io::Dtype type) {
  for (const DtypeRow& row : kDtypes) {
    if (row.file == type) return row.torch;
  }
  return std::nullopt;
}

at::Tensor ToTensor(const io::TensorView& view) {
  const at::Tensor tensor = at::empty(view.shape, TorchDtype(view.dtype).value());
  if (!view.data.empty()) std::memcpy(tensor.data_ptr(), view.data.data(), view.data.size());
  return tensor;
}

std::string Shape(at::IntArrayRef shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += Concat(i ? ", " : "", shape[i]);
  return text + "]";
}

void AddList(std::string* message, const char* title, const std::vector<std::string>& names) {
  if (names.empty()) return;
  *message += Concat("; ", title, " ");
  for (size_t i = 0; i < names.size(); ++i) *message += (i ? ", " : "") + names[i];
}

}  // namespace

void TensorPack::Add(const std::string& prefix, const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor& owner = owners_.emplace_back(tensor.detach().cpu().contiguous());
    const auto* bytes = static_cast<const std::byte*>(owner.data_ptr());
    views_[prefix + name] = {
        FileDtype(owner.scalar_type()), owner.sizes().vec(), {bytes, owner.nbytes()}};
  }
}

void CopyInto(const io::SafetensorsFile& file, const std::string& prefix,
              const NamedTensors& targets) {
  std::vector<std::string> missing, extra, wrong;
  std::set<std::string> expected;
  for (const auto& [name, target] : targets) {
    expected.insert(prefix + name);
    const auto found = file.tensors().find(prefix + name);
    if (found == file.tensors().end()) {
      missing.push_back(name);
      continue;
    }
    const io::TensorView& view = found->second;
    const auto type = TorchDtype(view.dtype);
    if (at::IntArrayRef(view.shape) != target.sizes()) {
      wrong.push_back(Concat(name, " ", Shape(view.shape), " instead of ", Shape(target.sizes())));
    } else if (!type || at::isFloatingType(*type) != at::isFloatingType(target.scalar_type())) {
      wrong.push_back(Concat(name, " of type ", io::Name(view.dtype)));
    }
  }
  for (const auto& [name, view] : file.tensors()) {
    if (name.starts_with(prefix) && !expected.contains(name))
      extra.push_back(name.substr(prefix.size()));
  }
  if (!missing.empty() || !extra.empty() || !wrong.empty()) {
    std::string message = file.path().string() + " does not fit the model";
    AddList(&message, "missing:", missing);
    AddList(&message, "not of the model:", extra);
    AddList(&message, "wrong:", wrong);
    throw Error(message + "; use the file with the config.json that it was trained with");
  }
  const at::NoGradGuard no_grad;
  for (const auto& [name, target] : targets) target.copy_(ToTensor(file.at(prefix + name)));
}

}  // namespace hkt::train
