"""The graph executor, as Relay users call it.

lib = headrace.runtime.load_module("model.so")
m = headrace.graph_executor.GraphModule(lib["default"](headrace.cpu()))
m.set_input("x", x)
m.run()
y = m.get_output(0).numpy()
"""

from headrace._compat import places

__all__ = places.show(__name__)
