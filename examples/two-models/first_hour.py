"""The shortest program that runs two ONNX models as a pipeline, on the frames of a file."""

import headrace as hr
import numpy as np
from headrace import pipeline

for name in ("first", "second"):
    hr.compile(f"{name}.onnx", threads=1, output=f"{name}.so")
frames = np.load("frames.npy")
with pipeline.chain(["first.so", "second.so"]) as pipe:
    for scores in pipe.map(frames):
        print(scores.numpy().argmax())
