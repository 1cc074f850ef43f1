"""Work for the tests of the bench: in a module of its own, because other processes have to import it."""

import errno


def square(x):
    return {"x": x, "square": x * x}


def record(x, log):
    with open(log, "a") as file:
        file.write(f"{x}\n")
    return square(x)


def fail_at(x, bad):
    if x == bad:
        raise KeyError("no such thing")
    return square(x)


def full_disk(path):
    raise OSError(errno.ENOSPC, "No space left on device", path)
