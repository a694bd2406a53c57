"""Another job system, with a server and two workers of its own: how many jobs a second it does.

    run.py NAME --seconds S [--window N] [--workers N] [--request BYTES] [--reply BYTES]

The job is the same for all: a request of so many bytes, a worker that does nothing with it, a reply of so many bytes
that comes back to who asked, and so many jobs in flight. Prints one line of JSON, {"per_second": …}. Exit status 3: it
is not installed. Servers listen on loopback, on free ports, and keep what they write in a folder that goes with them.
"""

import argparse
import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"  # the one that Debian's packages are for
PR_SET_PDEATHSIG = 1


def redis(port, folder):
    return ["redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", folder, "--save", "", "--appendonly", "no"]


def gearmand(port, folder):
    return ["gearmand", "--listen=127.0.0.1", f"--port={port}", "--threads=1", f"--log-file={folder}/log"]


def beanstalkd(port, _folder):
    return ["beanstalkd", "-l", "127.0.0.1", "-p", port]


def nats(port, _folder):
    return ["nats-server", "-a", "127.0.0.1", "-p", port]


# name: server, script, Python or Node module that the script needs
PEERS = {
    "gearman": (gearmand, [PYTHON, "gearman.py"], None),
    "beanstalkd": (beanstalkd, [PYTHON, "beanstalk.py"], None),
    "celery": (redis, [PYTHON, "celery_jobs.py"], "import celery, redis"),
    "nats.js": (nats, ["node", "nats_service.js"], "require('nats')"),
    "bullmq": (redis, ["node", "bullmq.js"], "require('bullmq')"),
}


def installed(server, script, module):
    if not all(map(shutil.which, (server, script[0]))):
        return False
    flag = "-c" if script[0] == PYTHON else "-e"
    return module is None or subprocess.run([script[0], flag, module], stderr=subprocess.DEVNULL).returncode == 0


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


def die_with_us():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@contextlib.contextmanager
def running(command, folder):
    with open(os.path.join(folder, "output"), "a") as output:
        process = subprocess.Popen(command, cwd=HERE, stdout=output, stderr=output, preexec_fn=die_with_us,
                                   start_new_session=True)
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # with what it has started itself
        process.wait()


def await_port(port):
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", int(port)), 1):
            return
        time.sleep(0.05)
    sys.exit("the server does not listen")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("name", choices=PEERS)
    options.add_argument("--seconds", default="2")
    options.add_argument("--window", default="256")
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--request", default="200")
    options.add_argument("--reply", default="600")
    given = options.parse_args()
    os.environ["PATH"] += ":/usr/sbin"
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # nothing stays in the source tree
    server, script, module = PEERS[given.name]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        os.environ["TMPDIR"] = folder  # of what is killed and does not tidy up
        port = free_port()
        command = server(port, folder)
        if not installed(command[0], script, module):
            sys.exit(3)
        stack.enter_context(running(command, folder))
        await_port(port)
        for _ in range(given.workers):
            stack.enter_context(running([*script, "work", port, given.reply], folder))
        submit = [*script, "submit", port, given.seconds, given.window, given.request]
        done = subprocess.run(submit, cwd=HERE, timeout=120, preexec_fn=die_with_us)
        if done.returncode != 0:
            sys.exit(pathlib.Path(folder, "output").read_text()[-2000:])


if __name__ == "__main__":
    main()
