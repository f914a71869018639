"""The graph executor: `headrace.graph_executor`, `headrace.contrib.graph_executor`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from numbers import Integral
from typing import Any

from headrace import _public
from headrace._arguments import kind, retold, text
from headrace._container import Array
from headrace._core import Device, Module, NDArray, UserError, array, try_array
from headrace._numpy import cast_array
from headrace._params import load_param_dict
from headrace._timing import BenchmarkResult, TimingPlan, check_device

__all__ = ["GraphModule", "create"]


def _plain(value: Any) -> Any:
    """Arrays and maps as lists and dicts."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, Array) else value


def graph_json_of(module: Module) -> str:
    """The JSON of the steps of a compiled module, as `GraphExecutorFactoryModule.get_graph_json` gives it."""
    if not isinstance(module, Module) or not module.implements_function("get_graph_nodes"):
        got = "an empty module" if isinstance(module, Module) else kind(module)
        raise UserError(f"expected a compiled module, got {got}")
    return json.dumps(_plain(module["get_graph_nodes"]()))


def create(graph_json_str: str, libmod: Any, device: Device) -> GraphModule:
    """An executor of what `graph, lib, params = relay.build(...)` gives.

    Parameters
    ----------
    graph_json_str : str
        The graph, which is the library's own: it is in the code already.
    libmod : runtime.Module
        The library, or one that `runtime.load_module` gives of its file.
    device : Device
        The CPU.

    Returns
    -------
    GraphModule

    Raises
    ------
    UserError
        For another graph than the library's, and for what is not a compiled module.
    """
    module = getattr(libmod, "module", libmod)
    own = graph_json_of(module)
    try:
        is_same = json.loads(text(graph_json_str, "create: graph_json_str")) == json.loads(own)
    except json.JSONDecodeError as error:
        raise UserError(f"create: graph_json_str is not JSON: {error}") from None
    if not is_same:
        raise UserError("create: graph_json_str is another graph than the library's; give what the same build gave")
    return GraphModule(module["default"](device))


class GraphModule:
    """A graph executor; `module` is what lib["default"](device) gives.

    set_input, run and get_output belong together: use one executor from one thread at a time. Threads that do not are
    safe, call by call, but see each other's inputs and outputs.
    """

    def __init__(self, module: Module) -> None:
        if not isinstance(module, Module) or not module.implements_function("set_input"):
            got = "an empty module" if isinstance(module, Module) else kind(module)
            raise UserError(f'module: expected a graph executor, lib["default"](headrace.cpu()), got {got}')
        self.module = module

    def set_input(self, key: str | int | None = None, value: Any = None, /, **params: Any) -> None:
        """Copies tensors in: one by name or index, and any number by keyword.

        Parameters
        ----------
        key : str or int, optional
            An input; or a parameter that was bound at the build, which is a constant of the code.
        value : tensor, optional
            Its elements. An array of numpy is cast to the program's dtype within its kind or to a wider one (float64 to
            float32, int32 to float32); a tensor of another kind has that dtype.
        **params
            Others by name. key="x", or an index, is `key` itself and value= its `value`; else these are inputs that
            are called so.

        Raises
        ------
        UserError
            For a tensor that does not fit, what is the name or index of no input, or other elements than a parameter
            was bound to.
        """
        if key is None and isinstance(params.get("key"), (str, Integral, Mapping, type(None))):
            key = params.pop("key", None)
        if value is None and (key is not None or params.get("value") is None):
            value = params.pop("value", None)
        if isinstance(key, Mapping):
            raise UserError("set_input: a dict is given; write set_input(**params), which takes inputs by name")
        if not isinstance(key, (str, Integral, type(None))):
            raise UserError(f"set_input: key: expected the name or the index of an input, got {kind(key)}")
        self._set_inputs(params if key is None else {key: value, **params})

    def _set_inputs(self, tensors: Mapping[str | int, Any]) -> None:
        """Copies tensors in. In a mapping every name is an input's, also `key`, `value` and `self`."""
        for name, tensor in tensors.items():
            given = cast_array(tensor, self._dtype_of_input(name, tensor))
            value = try_array(given)
            if value is None:
                value = array(given, f"input {name!r}", self._dtype_for(name, given))
            try:
                self.module["set_input"](name, value)
            except UserError as error:
                raise self._with_cast(error, name, value) from None

    def _with_cast(self, error: UserError, name: str | int, value: NDArray) -> UserError:
        """The error of setting an input; when only the dtype is wrong, with the cast to write."""
        message, at, place = str(error).partition("\n")
        if f"has dtype {value.dtype}" not in message or name in self._bound_params():
            return error
        return retold(error, f'{message}; cast it, as x.astype("{self.get_input(name).dtype}") does{at}{place}')

    def _dtype_of_input(self, name: str | int, value: Any) -> str:
        """The dtype that the program takes for an array of numpy; "" where set_input says what is wrong."""
        if not hasattr(value, "dtype") or isinstance(value, NDArray) or name in self._bound_params():
            return ""
        try:
            return str(self.get_input(name).dtype)
        except UserError:
            return ""

    def _dtype_for(self, name: str | int, value: Any) -> str:
        # Lists and numbers have none of their own.
        if hasattr(value, "dtype") or name in self._bound_params():
            return ""
        return str(self.get_input(name).dtype)

    def _bound_params(self) -> list[str]:
        return list(self.module["get_bound_params"]())

    def set_input_zero_copy(self, key: str | int, value: Any) -> None:
        """Makes runs read `value` itself."""
        self.module["set_input_zero_copy"](key, value)

    def set_output_zero_copy(self, key: int, value: Any) -> None:
        """Makes runs write to `value` itself."""
        self.module["set_output_zero_copy"](key, value)

    def run(self, /, **inputs: Any) -> None:
        """Runs on the inputs that are set, after setting those given here."""
        self._set_inputs(inputs)
        self.module["run"]()

    def get_num_inputs(self) -> int:
        """How many inputs there are."""
        return self.module["get_num_inputs"]()

    def get_num_outputs(self) -> int:
        """How many outputs there are."""
        return self.module["get_num_outputs"]()

    def get_input(self, key: str | int) -> NDArray:
        """A view of what the program reads."""
        return self.module["get_input"](key)

    def get_input_index(self, name: str) -> int:
        """The index of the input of that name, or -1."""
        return self.module["get_input_index"](name)

    def get_output(self, index: int, out: Any = None) -> NDArray:
        """A view of an output, which the next run overwrites; or a copy into `out`."""
        if out is None:
            return self.module["get_output"](index)
        self.module["get_output"](index, out)
        return out

    def get_input_info(self) -> tuple[Mapping[str, tuple], Mapping[str, str]]:
        """Shapes and dtypes of the inputs by name."""
        info = self.module["get_input_info"]()
        return info["shape"], info["dtype"]

    def get_output_info(self) -> tuple[Mapping[str, tuple], Mapping[str, str]]:
        """Shapes and dtypes of the outputs by name."""
        info = self.module["get_output_info"]()
        return info["shape"], info["dtype"]

    def load_params(self, params_bytes: bytes | bytearray) -> None:
        """Sets the inputs that `relay.save_param_dict` saved, as `set_input` does; other names are skipped."""
        bound = self._bound_params()
        params = load_param_dict(params_bytes)
        self._set_inputs({name: params[name] for name in params if name in bound or self.get_input_index(name) >= 0})

    def benchmark(
        self,
        /,
        device: Device | None = None,
        func_name: str = "run",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: float | None = None,
        limit_zero_time_iterations: int = 100,
        end_to_end: bool = False,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
        **inputs: Any,
    ) -> BenchmarkResult:
        """The seconds that a run takes; printed, a table in milliseconds.

        Parameters
        ----------
        device : Device, optional
            The CPU.
        func_name : str
            What is timed.
        repeat : int
            How many repetitions.
        number : int
            How many runs a repetition has.
        min_repeat_ms : float, optional
            How many milliseconds a repetition takes at least; with it the number of runs grows until it does.
        limit_zero_time_iterations : int
            How many times it grows where the clock shows no time at all.
        end_to_end : bool
            Whether copying `inputs` in and the outputs out counts too.
        cooldown_interval_ms : float
            How long to wait between repetitions.
        repeats_to_cooldown : int
            How many repetitions there are between two waits.
        **inputs
            Inputs by name, which are set before; one that is called as an argument above is set by `set_input`.

        Returns
        -------
        BenchmarkResult
            mean, median, min, max and std of the repetitions, which are `results`.

        Raises
        ------
        UserError
            For a count below 1, a time below 0; for end_to_end of another function than "run".
        """
        if not end_to_end:
            self._set_inputs(inputs)
            return self.module.time_evaluator(
                func_name,
                device,
                number,
                repeat,
                min_repeat_ms,
                limit_zero_time_iterations,
                cooldown_interval_ms,
                repeats_to_cooldown,
            )()
        plan = TimingPlan(
            number, repeat, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown
        )
        check_device(device)
        if func_name != "run":
            raise UserError(f"benchmark: end_to_end is of a run, got func_name={func_name!r}; leave one of them out")

        def from_end_to_end() -> None:
            self.run(**inputs)
            for i in range(self.get_num_outputs()):
                output = self.get_output(i)
                output.copyto(output.device)

        return plan.time(from_end_to_end)

    def __getitem__(self, name: str) -> Any:
        return self.module[name]


_public.publish(__name__, "headrace.graph_executor")
