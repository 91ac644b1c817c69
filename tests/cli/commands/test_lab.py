import builtins

from ebql.lab.serving import listen


def test_a_folder_that_does_not_exist_is_refused(refused, tmp_path):
    assert "There is no folder" in refused(["lab", str(tmp_path / "gone"), "--no-open"])
    (tmp_path / "file").write_text("")
    assert "There is no folder" in refused(["lab", str(tmp_path / "file"), "--no-open"])


def test_a_port_in_use_is_refused(refused, tmp_path):
    address = listen(None, 0)
    port = address.listener.getsockname()[1]
    assert "in use" in refused(["lab", str(tmp_path), "--no-open", "--port", str(port)])
    address.listener.close()


def test_a_missing_extra_names_what_installs_it(refused, tmp_path, monkeypatch):
    real_import = builtins.__import__

    def without_uvicorn(name, *args, **kwargs):
        if name.startswith("ebql.lab"):
            raise ModuleNotFoundError("No module named 'uvicorn'", name="uvicorn")
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_uvicorn)
    assert 'uvicorn: pip install "ebql[lab]"' in refused(["lab", str(tmp_path), "--no-open"])
