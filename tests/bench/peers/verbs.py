"""The command line of the Python programs: `work PORT REPLY_BYTES | submit PORT SECONDS WINDOW REQUEST_BYTES`."""

import sys


def run(work, submit):
    verb, port, *numbers = sys.argv[1:]
    if verb == "work":
        work(int(port), int(numbers[0]))
    else:
        submit(int(port), float(numbers[0]), int(numbers[1]), int(numbers[2]))
