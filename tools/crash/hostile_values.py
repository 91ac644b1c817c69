"""The words, values, cells and commands that hostile input is made of."""

from typing import Any

DEEP = "[" * 3000 + "]" * 3000
WORDS = (
    "", " ", "-", "--", "=", "0", "-1", "1e400", "nan", "-inf", "9" * 30, "1_0", "٣", "0x10", "1e-320",
    "True", "None",
    "/dev/null", "/", ".", "..", "nowhere", "a/" * 300, "x" * 5000, "\x1b[31mred\x1b[0m", "\x07", "a\nb",
    "\ud800", "日本",
    "=cmd()", "%s%n", "{0}", "[red]", "$(true)", "'", '"', "\\", "module:Env-v0", "stranger:Env-v0",
    "CartPole-v1", "meta",
    "mps", "xla", "cuda:99", "cpu:0:0", "-h", "--help", "--out", "*", "~root", "\u202e", "\x00", DEEP,
)  # fmt: skip
COMMANDS = (
    "best-k --means 1 0.5 --samples 10",
    "best-k --means 1 0.5 0.2 --stds 1 2 3 --samples 5 --seed 1",
    "best-k --csv good.csv --splits 3",
    "plan table1 --agents dqn --seeds 1",
    "train CartPole-v1 --agent dqn --steps 4 --out run-a --preset plain --hidden 4 --evaluation-period 0",
    "train ebql/MetaChain-v0 --agent ebql --steps 4 --out run-b --ensemble-size 2 --device cpu --threads 1",
    "train FrozenLake-v1 --agent rainbow --steps 4 --out run-c --atoms 5 --v-min 0 --v-max 1",
    "resume run --steps 60",
    "evaluate run --episodes 1 --seed 0",
    "evaluate agent.safetensors --episodes 1",
    "watch run --out film.gif --episodes 1",
    "curves run --out curves",
    "sweep study.toml --out study --dry-run --workers 1",
    "sweep --status study",
    "report study",
    "agents",
    "environments",
)
STUDY = """
agents = ["dqn"]
environments = ["ebql/MetaChain-v0"]
seeds = 2
steps = 10
preset = "plain"
hidden = [4]
evaluation = { period = 5, episodes = 1 }
cpus = 1
retries = 0
[[agent]]
name = "ebql"
label = "mine"
ensemble_size = 2
"""
VALUES = (
    '""', "0", "-1", "1e400", "nan", "-inf", "9" * 40, "true", "[]", "{}", "[[]]", '[""]', "[1, 2]",
    '["a", "a"]',
    '"../../escape"', '"\\u001b[31mred"', '"=1+1"', '"/etc/passwd"', '"stranger:Env-v0"',
    '"no_such_module:Env-v0"',
    "1979-05-27", "{ a = { b = { c = 1 } } }", "[" * 500 + "]" * 500, "[" * 50_000 + "]" * 50_000,
    '"' + "x" * 5000 + '"',
    "[true, 1, 0.5]", '"\\uD800"', "0.1", "'''\n\n'''", "\x00", "é", "= =", "[",
)  # fmt: skip
CELLS = (
    "", " ", "nan", "inf", "-inf", "1e400", "1e308", "-1e308", "5e-324", "abc", "1,5", "=1+1",
    "\x1b[31m", "\x00", '"',
    "'", "9" * 400, "0x1p3", "٣", "1_000", "true", "\u202e", "1;2", "\t", "\r", "#", "x" * 200_000,
)  # fmt: skip


JSON: tuple[Any, ...] = (
    None, True, 0, -1, 2**40, 2**70, 1e308, float("nan"), "", "x" * 3000, "\x1b[31mred", "../..",
    "stranger:Env-v0", [], {}, [[]],
    {"a": {"a": {}}}, [2**31, 2**31], [0], [-1], "F64", "no_such_module:Env-v0", "meta", "1", ["a"] * 50,
)  # fmt: skip
