"""Small steps towards an ONNX graph: operators by name, constants, and the finished model."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebql.errors import InputError

ROWS = "rows"
"""The name of the axis of observations, whose length is free."""
_OPSET, _IR_VERSION = 20, 9  # of early 2024: runtimes that are older know neither GELU nor these files


class OnnxGraph:
    """An ONNX graph in the making. Tensors are called by their names."""

    def __init__(self) -> None:
        self._onnx = require_onnx()
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def input(self, name: str, dtype: str, shape: Sequence[int]) -> str:
        """Add an input (rows, *shape)."""
        self._inputs.append(self._described(name, dtype, shape))
        return name

    def output(self, name: str, tensor: str, dtype: str, shape: Sequence[int]) -> None:
        """Name a tensor (rows, *shape) as an output."""
        self._nodes.append(self._onnx.helper.make_node("Identity", [tensor], [name]))
        self._outputs.append(self._described(name, dtype, shape))

    def constant(self, values: Any, dtype: str = "float32") -> str:
        """Add a constant tensor."""
        name = f"constant_{len(self._constants)}"
        array: NDArray[Any] = np.ascontiguousarray(values, dtype).reshape(np.shape(values))
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, operator: str, *tensors: str, **attributes: Any) -> str:
        """Add an operator on tensors; return the name of its result."""
        name = f"{operator.lower()}_{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(operator, list(tensors), [name], **attributes))
        return name

    def split(self, tensor: str, sizes: Sequence[int]) -> list[str]:
        """Cut a tensor (rows, n) into parts (rows, sizes[i])."""
        names = [f"split_{len(self._nodes)}_{i}" for i in range(len(sizes))]
        lengths = self.constant(sizes, "int64")
        self._nodes.append(self._onnx.helper.make_node("Split", [tensor, lengths], names, axis=1))
        return names

    def reshape(self, tensor: str, *shape: int) -> str:
        """Reshape a tensor; one length may be −1."""
        return self.add("Reshape", tensor, self.constant(shape, "int64"))

    def cast(self, tensor: str, dtype: str) -> str:
        """Convert a tensor to another type of numbers."""
        return self.add("Cast", tensor, to=self._type(dtype))

    def mean(self, tensor: str, axis: int, *, keep: bool = False) -> str:
        """Average a tensor over an axis."""
        return self.add("ReduceMean", tensor, self.constant([axis], "int64"), keepdims=int(keep))

    def minimum(self, tensor: str, axis: int) -> str:
        """Return the minimum of a tensor over an axis."""
        return self.add("ReduceMin", tensor, self.constant([axis], "int64"), keepdims=0)

    def model(self, about: Mapping[str, str]) -> bytes:
        """Return the file: the graph, checked, and what is to be known about it."""
        helper = self._onnx.helper
        graph = helper.make_graph(self._nodes, "agent", self._inputs, self._outputs, self._constants)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", _OPSET)],
            ir_version=_IR_VERSION,
            producer_name="ebql",
        )
        helper.set_model_props(model, dict(about))
        self._onnx.checker.check_model(model, full_check=True)
        content: bytes = model.SerializeToString()
        return content

    def _described(self, name: str, dtype: str, shape: Sequence[int]) -> Any:
        return self._onnx.helper.make_tensor_value_info(name, self._type(dtype), [ROWS, *shape])

    def _type(self, dtype: str) -> Any:
        return self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def require_onnx() -> Any:
    """Return `onnx`; raise an error that names the command to install it, if it is missing."""
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise InputError('Exporting needs onnx: pip install "ebql[onnx]"') from error
    return onnx
