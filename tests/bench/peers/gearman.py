"""Jobs through gearmand and libgearman, Debian's.

    gearman.py work PORT REPLY_BYTES | submit PORT SECONDS WINDOW REQUEST_BYTES

Its client sends tasks in groups: WINDOW of them, and the next group when all are back. Left out, against Muster:
leases, retries, limits, a store. One thread in gearmand: with its default of four it does less on two cores.
"""

import ctypes
import sys
import time

import verbs

GEARMAN_SUCCESS = 0
lib = ctypes.CDLL("libgearman.so.8")
libc = ctypes.CDLL(None)
libc.calloc.restype = ctypes.c_void_p
Job = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t),
                       ctypes.POINTER(ctypes.c_int))
for name in ("gearman_worker_create", "gearman_client_create", "gearman_client_add_task"):
    getattr(lib, name).restype = ctypes.c_void_p


def connected(kind, port):
    handle = ctypes.c_void_p(getattr(lib, f"gearman_{kind}_create")(None))
    getattr(lib, f"gearman_{kind}_add_server")(handle, b"127.0.0.1", ctypes.c_uint16(port))
    return handle


def work(port, reply):
    @Job
    def job(_job, _context, size, status):
        size[0] = reply
        status[0] = GEARMAN_SUCCESS
        return libc.calloc(1, reply)  # the library frees it

    worker = connected("worker", port)
    lib.gearman_worker_add_function(worker, b"job", 0, job, None)
    while lib.gearman_worker_work(worker) == GEARMAN_SUCCESS:
        pass


def submit(port, seconds, window, size):
    client = connected("client", port)
    body = b"q" * size
    length, status = ctypes.c_size_t(size), ctypes.c_int()

    def group(count):
        for _ in range(count):
            lib.gearman_client_add_task(client, None, None, b"job", None, body, length, ctypes.byref(status))
        if lib.gearman_client_run_tasks(client) != GEARMAN_SUCCESS:
            sys.exit("the tasks failed")
        lib.gearman_client_task_free_all(client)

    group(window)
    begun = time.monotonic()
    done = 0
    while time.monotonic() - begun < seconds:
        group(window)
        done += window
    print('{"per_second": %f}' % (done / (time.monotonic() - begun)))


verbs.run(work, submit)
