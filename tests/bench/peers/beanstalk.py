"""Jobs through beanstalkd, Debian's, by its protocol: Debian has no client of it.

    beanstalk.py work PORT REPLY_BYTES | submit PORT SECONDS WINDOW REQUEST_BYTES

It has no replies: a second tube brings them back. Commands go out many at a time, and some reservations ahead, so that
Python waits for nothing. Left out, against Muster: leases are there, retries by them too; limits and a store are not.
"""

import socket
import sys
import time

import verbs

AHEAD = 16  # reservations that wait; of all connections fewer than jobs are in flight, or none would go on


class Connection:
    def __init__(self, port, tube_in, tube_out):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest = b""
        self.socket.sendall(b"use %s\r\nwatch %s\r\nignore default\r\n" % (tube_out, tube_in) + b"reserve\r\n" * AHEAD)

    def reserved(self):
        """Ids of the jobs that the next read brings; answers to other commands are passed over."""
        data = self.rest + self.socket.recv(1 << 18)
        ids, at = [], 0
        while (end := data.find(b"\r\n", at)) >= 0:
            words = data[at:end].split()
            end += 2
            if words[0] == b"RESERVED":
                end += int(words[2]) + 2
                if end > len(data):
                    break
                ids.append(words[1])
            elif words[0] not in (b"INSERTED", b"DELETED", b"USING", b"WATCHING"):
                sys.exit(f"beanstalkd says {words}")
            at = end
        self.rest = data[at:]
        return ids

    def answer(self, ids, put):
        self.socket.sendall(b"".join(b"delete %s\r\n%breserve\r\n" % (one, put) for one in ids))


def put_of(size):
    return b"put 0 0 60 %d\r\n%b\r\n" % (size, b"q" * size)


def work(port, reply):
    connection = Connection(port, b"jobs", b"replies")
    put = put_of(reply)
    while True:
        connection.answer(connection.reserved(), put)


def submit(port, seconds, window, size):
    connection = Connection(port, b"replies", b"jobs")
    putting = socket.create_connection(("127.0.0.1", port))  # the other one's commands wait behind its reservations
    putting.sendall(b"use jobs\r\n" + put_of(size) * window)
    putting.recv(1 << 18)
    done, begun = -window, 0.0
    while done < 0 or time.monotonic() - begun < seconds:
        ids = connection.reserved()
        connection.answer(ids, put_of(size))
        before, done = done, done + len(ids)
        if before < 0 <= done:
            begun, done = time.monotonic(), 0
    print('{"per_second": %f}' % (done / (time.monotonic() - begun)))


verbs.run(work, submit)
