#include "ops/tensor/device.h"

#include "ops/families.h"

namespace headrace::ops {

void OnDeviceAttrs::fields(FieldList<OnDeviceAttrs>& f) {
  f.field<&OnDeviceAttrs::virtual_device>("virtual_device", {.doc = "the device, as cuda:1 or cuda:1/global"})
      .field<&OnDeviceAttrs::constrain_result>(
          "constrain_result",
          {.default_value = false, .has_default = true, .doc = "whether the result must be on the device"})
      .field<&OnDeviceAttrs::constrain_body>("constrain_body",
                                             {.default_value = true,
                                              .has_default = true,
                                              .doc = "whether the annotated value must be computed on the device"});
}

void DeviceCopyAttrs::fields(FieldList<DeviceCopyAttrs>& f) {
  f.field<&DeviceCopyAttrs::src_virtual_device>("src_virtual_device", {.doc = "where the argument is"})
      .field<&DeviceCopyAttrs::dst_virtual_device>("dst_virtual_device", {.doc = "where the result is"});
}

namespace {

void check_device(const RelationInput& input, const std::string& text) {
  try {
    parse_virtual_device(text);
  } catch (const UserError& error) {
    input.fail(error.message());
  }
}

Type relate_on_device(const RelationInput& input) {
  check_device(input, input.call.attrs_as<OnDeviceAttrs>().virtual_device);
  return input.tensor(0);
}

Type relate_device_copy(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<DeviceCopyAttrs>();
  check_device(input, attrs.src_virtual_device);
  check_device(input, attrs.dst_virtual_device);
  return input.tensor(0);
}

std::optional<std::vector<PrimExpr>> same_value(const RelationInput& input) { return input.arg_value(0); }

std::vector<NDArray> eval_same(const EvalInput& input) { return {input.args[0]}; }

}  // namespace

void register_device_ops() {
  OpBuilder("on_device",
            "x, with a word on where it is computed (constrain_body) and where it is needed (constrain_result): "
            "x[...] -> the same type. PlanDevices reads it; by itself it does nothing.")
      .arg("data", "Tensor", "T[...]: x")
      .attrs<OnDeviceAttrs>()
      .relation(relate_on_device)
      .value(same_value)
      .fusion(FusionKind::opaque)
      .eval(eval_same);
  OpBuilder("device_copy", "x on another device: x[...] -> the same type.")
      .arg("data", "Tensor", "T[...]: the tensor to copy")
      .attrs<DeviceCopyAttrs>()
      .relation(relate_device_copy)
      .value(same_value)
      .fusion(FusionKind::opaque)
      .eval(eval_same);
}

Expr on_device(Expr data, std::string virtual_device, bool constrain_result, bool constrain_body, Span span) {
  return call_with<OnDeviceAttrs>("on_device", {std::move(data)}, std::move(span), [&](auto& a) {
    a.virtual_device = std::move(virtual_device);
    a.constrain_result = constrain_result;
    a.constrain_body = constrain_body;
  });
}

Expr device_copy(Expr data, std::string src_virtual_device, std::string dst_virtual_device, Span span) {
  return call_with<DeviceCopyAttrs>("device_copy", {std::move(data)}, std::move(span), [&](auto& a) {
    a.src_virtual_device = std::move(src_virtual_device);
    a.dst_virtual_device = std::move(dst_virtual_device);
  });
}

}  // namespace headrace::ops
