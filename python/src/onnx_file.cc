// Reads for sessions what an ONNX file holds beside its nodes, and writes its bytes with other initialisers.
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/mapped_file.h"
#include "frontend/onnx/file/read_model.h"
#include "frontend/onnx/file/with_initializers.h"
#include "gil.h"
#include "objects.h"
#include "values.h"

namespace headrace::python {

namespace {

struct OnnxInitializer {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  bool is_external = false;
};

// Keeps no bytes of the file. The texts are Python's, so that a property that is read twice is made once.
struct OnnxHeader {
  int64_t ir_version = 0;
  int64_t version = 0;
  nb::str producer_name{""};
  nb::str domain{""};
  nb::str doc{""};
  nb::dict properties = nb::dict();
  nb::str graph_name{""};
  nb::str graph_doc{""};
  nb::list input_names = nb::list();
  nb::dict denotations = nb::dict();
  nb::dict initializers = nb::dict();
};

nb::list denotations_of(const onnx::ValueInfo& input) {
  nb::list denotations;
  if (!input.type.shape) return denotations;
  for (const onnx::Dim& dim : *input.type.shape) denotations.append(to_shown(dim.denotation));
  return denotations;
}

OnnxHeader read_header(const std::string& path) {
  onnx::Model model;
  {
    GilReleased released;
    model = onnx::read_model(path);
  }
  OnnxHeader header{.ir_version = model.ir_version,
                    .version = model.version,
                    .producer_name = to_shown(model.producer_name),
                    .domain = to_shown(model.domain),
                    .doc = to_shown(model.doc),
                    .graph_name = to_shown(model.graph.name),
                    .graph_doc = to_shown(model.graph.doc)};
  for (const onnx::KeyValue& property : model.properties)
    header.properties[to_shown(property.key)] = to_shown(property.value);
  for (const onnx::ValueInfo& input : model.graph.inputs) {
    header.input_names.append(to_shown(input.name));
    header.denotations[to_shown(input.name)] = denotations_of(input);
  }
  for (const onnx::TensorProto& tensor : model.graph.initializers) {
    header.initializers[to_shown(tensor.name)] = OnnxInitializer{
        std::string(tensor.name), onnx::element_type_name(tensor.type), tensor.dims, tensor.is_external};
  }
  return header;
}

nb::bytes with_initializers(const std::string& path, const nb::dict& replaced, const std::set<std::string>& dropped) {
  std::map<std::string, NDArray, std::less<>> tensors;
  for (const auto& [key, tensor] : replaced) {
    const auto name = nb::cast<std::string>(key);
    tensors.emplace(name, to_ndarray(tensor, [&] { return fmt::format("initialiser '{}'", name); }));
  }
  std::string bytes;
  {
    GilReleased released;
    const auto file = MappedFile::open(path, "ONNX model");
    bytes = onnx::with_initializers(file->bytes(), path, tensors, {dropped.begin(), dropped.end()});
  }
  return nb::bytes(bytes.data(), bytes.size());
}

}  // namespace

void bind_onnx_file(nb::module_& m) {
  nb::class_<OnnxInitializer>(m, "OnnxInitializer", "A named constant of a model's graph.")
      .def_ro("name", &OnnxInitializer::name)
      .def_ro("dtype", &OnnxInitializer::dtype)
      .def_ro("shape", &OnnxInitializer::shape)
      .def_ro("is_external", &OnnxInitializer::is_external);
  nb::class_<OnnxHeader>(m, "OnnxHeader", "What an ONNX model says beside its nodes.")
      .def(nb::init<>())
      .def_ro("ir_version", &OnnxHeader::ir_version)
      .def_ro("producer_name", &OnnxHeader::producer_name)
      .def_ro("domain", &OnnxHeader::domain)
      .def_ro("version", &OnnxHeader::version)
      .def_ro("doc", &OnnxHeader::doc)
      .def_ro("properties", &OnnxHeader::properties)
      .def_ro("graph_name", &OnnxHeader::graph_name)
      .def_ro("graph_doc", &OnnxHeader::graph_doc)
      .def_ro("input_names", &OnnxHeader::input_names)
      .def_ro("denotations", &OnnxHeader::denotations, "Of each input's dimensions; \"\" where the file has none.")
      .def_ro("initializers", &OnnxHeader::initializers);
  m.def("read_onnx_header", &read_header, nb::arg("path"), "The header of an ONNX file.");
  m.def("onnx_with_initializers", &with_initializers, nb::arg("path"), nb::arg("replaced"), nb::arg("dropped"),
        "The model's bytes, in which initialisers have other values or are left out.");
}

}  // namespace headrace::python
