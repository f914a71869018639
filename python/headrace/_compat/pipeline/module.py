"""Running a pipeline, by the names that users of TVM know."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace import _arguments, _public
from headrace._compat.pipeline import adapter
from headrace._compat.pipeline.errors import PipelineExecutorError, told_of
from headrace._compat.pipeline.factory import PipelineExecutorFactoryModule
from headrace._compat.pipeline.running import RunningPipeline
from headrace._compat.pipeline.saved import parts_of
from headrace._core import NDArray

__all__ = ["PipelineModule", "create"]


def create(factory: PipelineExecutorFactoryModule) -> PipelineModule:
    """Starts the pipeline of a factory.

    Parameters
    ----------
    factory : PipelineExecutorFactoryModule
        What `build` gives.

    Returns
    -------
    PipelineModule

    Raises
    ------
    PipelineExecutorMissingError
        Where this build of Headrace runs no pipelines; it names the CMake option.
    """
    return PipelineModule(factory)


class PipelineModule:
    """A running pipeline: set its inputs, run, and get the outputs of the runs in their order.

    Parameters
    ----------
    module : PipelineExecutorFactoryModule
        What `build` gives; or `module` of another PipelineModule, which is shared then.
    """

    def __init__(self, module: PipelineExecutorFactoryModule | RunningPipeline) -> None:
        if isinstance(module, PipelineExecutorFactoryModule):
            module = module.get_pipeline_executor_module()
        if not isinstance(module, RunningPipeline):
            raise PipelineExecutorError(
                f"PipelineModule: expected what build(cfg) gives, got {_arguments.kind(module)}"
            )
        self.module = module

    def run(self, timeout: float | None = None) -> Any:
        """Starts a run with the inputs that were set, and gives its ticket at once.

        A run takes the inputs: each run needs all of them set. It has its place until `get_output` has given its
        outputs, and waits for a place while 16 runs have one, so that memory is bounded.

        Parameters
        ----------
        timeout : float, optional
            The most seconds to wait for a place; any without it, as long as another thread takes outputs.

        Returns
        -------
        Ticket

        Raises
        ------
        PipelineExecutorError
            For an input without a value, with its name; and when there is no place and no other thread takes outputs.
            Nothing enters the pipeline then, and the inputs stay set.
        TimeoutError
            When there is no place in time; so do they then.
        """
        if timeout is not None:
            with told_of("run"):
                timeout = _arguments.seconds(timeout, "timeout")
        return self.module.run(timeout)

    def set_input(self, key: str, value: Any) -> None:
        """Copies a tensor in for the next run.

        Parameters
        ----------
        key : str
            The name of an input of the pipeline.
        value : tensor
            Its elements. An array of numpy is cast as `GraphModule.set_input` does it.

        Raises
        ------
        PipelineExecutorError
            For an unknown name, and for another shape or dtype than the input's.
        """
        self.module.set_input(key, value)

    def get_input(self, key: str) -> NDArray:
        """The tensor that was set for the next run.

        Parameters
        ----------
        key : str
            The name of an input of the pipeline.

        Returns
        -------
        NDArray
        """
        return self.module.get_input(key)

    def set_params(self, params_group_name: str, params_data: Mapping[str, Any]) -> None:
        """Sets parameters of the module that a group is connected to, for the runs from now on.

        Parameters
        ----------
        params_group_name : str
            The group, `cfg["param_group"][params_group_name]`.
        params_data : dict of str to tensor
            Values by parameter: inputs of the module that nothing feeds. Those that were given to a `build_func` are
            constants of its code.

        Raises
        ------
        PipelineExecutorError
            For no values, an unknown group or parameter, and another shape or dtype. Nothing is set then.
        """
        self.module.set_params(params_group_name, params_data)

    def get_output(
        self, synchronize: bool = True, timeout: float | None = None, sleep_interval: float | None = None
    ) -> list[NDArray]:
        """The outputs of the oldest run whose outputs were not taken yet.

        Parameters
        ----------
        synchronize : bool
            Whether to wait for them, also for a run that another thread starts.
        timeout : float, optional
            The most seconds to wait; any without it.
        sleep_interval : float, optional
            Has no effect, since outputs that arrive end the wait.

        Returns
        -------
        list of NDArray
            In the order of the outputs' numbers; [] when `synchronize` is False and they are not there yet.

        Raises
        ------
        PipelineExecutorError
            For a `synchronize` that is not a bool, such as the number of an output: `get_output()[0]` is the first.
            When there is no run whose outputs were not taken, and no other thread that may start one.
        PipelineStopped
            When the pipeline is stopped, and no outputs are left.
        TimeoutError
            When they are not there in time; they can be waited for again.
        """
        del sleep_interval
        if not isinstance(synchronize, bool):
            raise PipelineExecutorError(
                f"get_output: synchronize: expected True or False, got {synchronize!r:.40}; get_output()[N] is output N"
            )
        if timeout is not None:
            with told_of("get_output"):
                timeout = _arguments.seconds(timeout, "timeout")
        return self.module.take_outputs(synchronize, timeout)

    def get_input_pipeline_map(self, name: str) -> list[str]:
        """The stages and their inputs that an input of the pipeline feeds.

        Parameters
        ----------
        name : str
            The input of the pipeline.

        Returns
        -------
        list of str
            The number of the stage, from 1 on, and the name of its input; of further ones, too, one after another.
        """
        return [str(part) for consumer in self.module.consumers_of(name) for part in consumer]

    def get_params_group_pipeline_map(self, name: str) -> int:
        """The number of the stage, from 1 on, whose parameters a group sets.

        Parameters
        ----------
        name : str
            The group.

        Returns
        -------
        int
        """
        return self.module.stage_of_group(name)

    @property
    def num_executing_pipeline(self) -> int:
        """How many runs were started so far, as TVM counts them."""
        return self.module.num_runs

    @property
    def num_outputs(self) -> int:
        """How many outputs the pipeline has."""
        return self.module.num_outputs

    @property
    def num_inputs(self) -> int:
        """How many inputs the pipeline has."""
        return self.module.num_inputs

    def stop(self) -> None:
        """Ends the pipeline: runs that wait are dropped, and threads that wait in `get_output` get PipelineStopped."""
        self.module.stop()

    @staticmethod
    def load_library(config_file_name: Any) -> PipelineModule:
        """Starts a pipeline that `export_library` wrote.

        Parameters
        ----------
        config_file_name : path
            The file whose path `export_library` gave, or another file of a pipeline whose stages are programs.

        Returns
        -------
        PipelineModule

        Raises
        ------
        PipelineExecutorError
            For a file that is not there, is damaged or is not a pipeline, and for one of TVM's.
        """
        with told_of("load_library"):
            name = _arguments.path(config_file_name, "config_file_name")
        if name.lower().endswith((".onnx", ".relay")):
            raise PipelineExecutorError(
                f"load_library: '{name}' is a model; build a pipeline that has it as a module, and load the file that "
                "export_library writes"
            )
        try:
            with Path(name).open("rb") as file:
                begin = file.read(_MOST_OF_TVM)
        except OSError as error:
            raise PipelineExecutorError(f"load_library: '{name}' cannot be read: {error.strerror}") from None
        if _is_of_tvm(begin):
            raise PipelineExecutorError(
                f"load_library: '{name}' is a configuration of TVM's export_library, which is not read; build the "
                "pipeline from its modules, and export it again"
            )
        with told_of("load_library"):
            mods, config = parts_of(name)
            return PipelineModule(RunningPipeline(mods, config, adapter.load(name)))


_MOST_OF_TVM = 1 << 20  # bytes of a configuration


def _is_of_tvm(content: bytes) -> bool:
    """Whether this is the JSON file that TVM's export_library writes beside the libraries."""
    try:
        read = json.loads(content)
    except ValueError:
        return False
    return isinstance(read, dict) and "load_config" in read


_public.publish(__name__, "headrace.pipeline_executor")
