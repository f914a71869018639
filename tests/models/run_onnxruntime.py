"""Runs a model once with onnxruntime: run_onnxruntime.py MODEL FOLDER NAME=INPUT.npy ...

Writes FOLDER/output_0.npy and so on, and prints its version. Graph optimisations are off, so that the model is computed
as it is written.
"""

import sys
from pathlib import Path

import numpy as np
import onnxruntime

options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
options.intra_op_num_threads = 1
options.log_severity_level = 4
model, folder = map(Path, sys.argv[1:3])
inputs = {name: np.load(file) for name, file in (word.split("=", 1) for word in sys.argv[3:])}
session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
outputs = session.run(None, inputs)
for i, output in enumerate(outputs):
    np.save(folder / f"output_{i}.npy", output)
print(onnxruntime.__version__)
