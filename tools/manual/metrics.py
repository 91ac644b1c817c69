"""The glossary of metrics, from the modules that define them."""

from sphinx.pycode import ModuleAnalyzer

from ebql.runs import metric_names
from manual.tables import table

_INTRODUCTION = """# Metrics

Every line of a run's `metrics.jsonl` is a record: its `step`, in agent steps, and some of the metrics below.
A value that could not be measured is `null` in the file, `None` in Python and `n/a` on the screen. Metrics
of your own start with `evaluation/` ([callbacks](../extending.md#callbacks)); a rule may log further ones.

## Training and evaluations
"""
_BIAS = """
## The bias

Every evaluation measures the bias; [its definition](../bias.md) explains these numbers. In Python,
`agent.measure_bias()` returns them as the fields of `Bias`.
"""


def page() -> str:
    """Return the page of all metrics."""
    shared = [
        [f"`{getattr(metric_names, name)}`", text]
        for name, text in _documented(metric_names.__name__, "")
        if not name.endswith("_PREFIX") and not name.startswith("BIAS")
    ]
    bias = [
        [f"`{metric_names.BIAS_PREFIX}{name}`", text]
        for name, text in _documented("ebql.deep.evaluation.bias", "Bias")
    ]
    head = ["metric", "meaning"]
    return f"{_INTRODUCTION}\n{table(head, shared)}\n{_BIAS}\n{table(head, bias)}\n"


def _documented(module: str, scope: str) -> list[tuple[str, str]]:
    """Return the documented names of a module, or of one of its classes, and their texts, in their order."""
    analyzer = ModuleAnalyzer.for_module(module)
    found = analyzer.find_attr_docs()
    order = analyzer.tagorder
    names = [name for where, name in found if where == scope]
    names.sort(key=lambda name: order.get(f"{scope}.{name}" if scope else name, 0))
    return [(name, " ".join(" ".join(found[scope, name]).split())) for name in names]
