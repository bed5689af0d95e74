"""Waiting for a condition with a deadline, never for a guessed time."""

import time

# Far above what anything here needs on a loaded machine of two cores; only a failure ever waits that long.
DEADLINE = 15.0
STEP = 0.05


def wait_until(read, accept, what, deadline=DEADLINE):
    """Calls `read` until `accept` takes its value, and returns that value; fails with the last value after `deadline` seconds."""
    end = time.monotonic() + deadline
    while True:
        value = read()
        if accept(value):
            return value
        if time.monotonic() >= end:
            raise AssertionError(f"not within {deadline:g} s: {what}; the last value: {value!r}")
        time.sleep(STEP)


def holds_for(read, accept, what, seconds):
    """Calls `read` for `seconds` and fails at the first value that `accept` does not take."""
    start = time.monotonic()
    while (passed := time.monotonic() - start) < seconds:
        value = read()
        assert accept(value), f"broken after {passed:.1f} s: {what}; the value: {value!r}"
        time.sleep(STEP)
