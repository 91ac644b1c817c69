import sys
from importlib import import_module

import pytest


def test_without_stable_baselines3_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    monkeypatch.delitem(sys.modules, "ebql.sb3", raising=False)
    with pytest.raises(ImportError, match=r'needs stable_baselines3: pip install "ebql\[sb3\]"'):
        import_module("ebql.sb3")
