import socket
import subprocess
import sys
import threading

import httpx
import pytest

from ebql.errors import InputError
from ebql.lab.serving import listen


def test_only_this_machine_can_connect_by_default():
    address = listen(None, 0)
    host, port = address.listener.getsockname()
    assert host == "127.0.0.1"
    assert address.token is None
    assert address.url == f"http://127.0.0.1:{port}/"
    address.listener.close()


def test_all_addresses_are_told_as_one_that_a_browser_can_open():
    address = listen("0.0.0.0", 0)
    assert address.url.startswith(f"http://{socket.gethostname()}:")
    assert address.url.endswith(f"?token={address.token}")
    address.listener.close()


def test_a_port_in_use_is_one_line():
    address = listen(None, 0)
    port = address.listener.getsockname()[1]
    with pytest.raises(InputError, match=rf"port {port}: .*in use.*--port 0"):
        listen(None, port)
    address.listener.close()


@pytest.mark.parametrize(("host", "port"), [(None, 70_000), (None, -1), ("no.such.host.invalid", 0)])
def test_an_impossible_address_is_refused(host, port):
    with pytest.raises(InputError):
        listen(host, port)


def test_the_command_serves_until_it_is_interrupted(tmp_path):
    command = "import sys; from ebql.cli import main; sys.exit(main())"
    words = [sys.executable, "-u", "-c", command, "lab", str(tmp_path), "--port", "0", "--no-open"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    limit = threading.Timer(60, process.kill)
    limit.start()
    told = process.stdout.readline()
    url = told.split()[5]
    assert httpx.get(url, follow_redirects=True).status_code == 200
    process.send_signal(2)
    _, err = process.communicate()
    limit.cancel()
    assert (process.returncode, err) == (0, "")
