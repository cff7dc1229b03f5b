"""Limits on the process that runs a student's file: memory, time, files, other processes.

Memory and time are limits of the system (rlimits). On Linux two more mechanisms are used, by its
system calls, since Python has no functions for them: Landlock, by which a process gives up files,
and seccomp, by which it gives up system calls. Neither needs rights, and nothing that the process
does afterwards takes them back.
"""

import contextlib
import ctypes
import os
import platform
import sys
from collections.abc import Callable, Iterable

MEMORY_BYTES = 256 << 20  # beside what Python and PyTorch take themselves
FILE_BYTES = 1 << 20  # of a file that is written, where nothing forbids to write
OPEN_FILES = 256

# System calls that are refused, by their numbers for x86_64 and aarch64 (−1: it has none there).
REFUSED = {
    # to signal, trace or read another process
    **{"kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "ptrace": (101, 117)},
    **{"rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240)},
    **{"pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438)},
    **{"process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272)},
    # to start one, or to leave the group that ends with the grader (prctl: to outlive it)
    **{"fork": (57, -1), "vfork": (58, -1), "execve": (59, 221), "execveat": (322, 281)},
    **{"setsid": (112, 157), "setpgid": (109, 154), "prctl": (157, 167)},
    # the network; io_uring does what is refused here by another way
    **{"socket": (41, 198), "socketpair": (53, 199), "io_uring_setup": (425, 425)},
    # memory that RLIMIT_DATA does not count
    **{"memfd_create": (319, 279), "shmget": (29, 194), "memfd_secret": (447, 447)},
    # what belongs to files, which Landlock does not guard
    **{"chmod": (90, -1), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452)},
    **{"chown": (92, -1), "fchown": (93, 55), "lchown": (94, -1), "fchownat": (260, 54)},
    **{"utime": (132, -1), "utimes": (235, -1), "futimesat": (261, -1), "utimensat": (280, 88)},
    **{"setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7)},
    **{"removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16)},
    # rights of its own in a namespace of its own
    **{"unshare": (272, 97), "setns": (308, 268)},
}
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column above, AUDIT_ARCH
CLONE, CLONE3, MMAP, FCNTL = (56, 220), (435, 435), (9, 222), (72, 25)
F_SETOWN, F_SETOWN_EX = 8, 15  # who gets the signals of a pipe, which may be SIGKILL

PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 22, 38
CAPSET = (126, 91)
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
O_PATH = 0x200000  # a place in the file system, which need not be readable
READ_FILE, READ_FOLDER, WRITE_FILE, EXECUTE = 4, 8, 2, 1
# Rights by Landlock's version: the first 13 in version 1, then to rename, to truncate, ioctl.
RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}


def confine_this_process(readable: Iterable[str], seconds: int) -> list[str]:
    """Give up, for good, what a student's functions do not need.

    Args:
        readable: folders that may be read; all others are closed, and none may be written.
        seconds: of processor time.

    Returns:
        A sentence for each limit that this system does not have.
    """
    steps: dict[str, Callable[[], None]] = {
        "Memory, or processor time, is not limited here.": lambda: _limit_resources(seconds),
        "Files are not guarded here.": lambda: _forbid_other_files(_load_libc(), readable),
        "Other processes and the network are not guarded here.": lambda: _forbid_system_calls(
            _load_libc()
        ),
    }
    missing = []
    for sentence, step in steps.items():
        try:
            step()
        except (ImportError, OSError, ValueError, AttributeError, KeyError):
            missing.append(sentence)
    return missing


def _limit_resources(seconds: int) -> None:
    import resource  # not on Windows

    used = 0
    with contextlib.suppress(OSError, ValueError, StopIteration), open("/proc/self/status") as file:
        used = int(next(line for line in file if line.startswith("VmData")).split()[1]) << 10
    limits = {
        resource.RLIMIT_DATA: (used or 1 << 30) + MEMORY_BYTES,
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_FSIZE: FILE_BYTES,
        resource.RLIMIT_NOFILE: OPEN_FILES,
        resource.RLIMIT_CORE: 0,
    }
    for which, limit in limits.items():
        hard = resource.getrlimit(which)[1]
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(which, (limit, limit))
    if sys.platform != "linux":
        raise OSError("RLIMIT_DATA does not count all memory.")


def end_with_parent() -> None:
    """End this process when the one that started it ends, where the system can do that."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            _call_checked(_load_libc().prctl, PR_SET_PDEATHSIG, 9, 0, 0, 0)


# --- Linux ---------------------------------------------------------------------------------------


class _Rule(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte)]
    _fields_ += [("value", ctypes.c_uint32)]


class _Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("rules", ctypes.POINTER(_Rule))]


class _Allowed(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("rights", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def _load_libc() -> ctypes.CDLL:
    """Return the C library, for its system calls.

    Raises:
        OSError: if this is not Linux, or other threads run, which would not be confined.
    """
    if sys.platform != "linux" or len(os.listdir("/proc/self/task")) > 1:
        raise OSError("There is nothing that confines this process.")
    libc = ctypes.CDLL(None, use_errno=True)
    _call_checked(libc.prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    return libc


def _forbid_system_calls(libc: ctypes.CDLL) -> None:
    """Give up root's rights, and system calls; `KeyError` where their numbers are not known."""
    column, machine = MACHINES[platform.machine()]
    version_3, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    _call_checked(libc.syscall, CAPSET[column], version_3, nothing)
    rules = (_Rule * len(program := _system_call_rules(column, machine)))(*program)
    filters = _Program(len(rules), rules)
    _call_checked(libc.prctl, PR_SET_SECCOMP, 2, ctypes.byref(filters), 0, 0)


def _call_checked(function: Callable[..., int], *arguments: object) -> int:
    result = function(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _forbid_other_files(libc: ctypes.CDLL, readable: Iterable[str]) -> None:
    version = _call_checked(libc.syscall, LANDLOCK_CREATE, None, 0, 1)
    rights = ctypes.c_uint64(RIGHTS[min(version, 5)])
    rules = _call_checked(libc.syscall, LANDLOCK_CREATE, ctypes.byref(rights), 8, 0)
    allowed = dict.fromkeys(readable, READ_FILE | READ_FOLDER | EXECUTE)
    for path, granted in {**allowed, os.devnull: READ_FILE | WRITE_FILE}.items():
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            place = os.open(path, O_PATH)
            only = granted if os.path.isdir(path) else granted & ~READ_FOLDER
            allow = _Allowed(only, place)
            try:
                _call_checked(libc.syscall, LANDLOCK_ADD, rules, 1, ctypes.byref(allow), 0)
            finally:
                os.close(place)
    _call_checked(libc.syscall, LANDLOCK_RESTRICT, rules, 0)
    os.close(rules)


def _system_call_rules(column: int, machine: int) -> list[_Rule]:
    """Return the filter, in the language of Berkeley's packet filter.

    A rule of kind `if_equal` goes on with the next one where it holds, and else leaves out `no`.
    """

    def load(place: int) -> _Rule:
        return _Rule(0x20, 0, 0, place)

    def end(action: int, error: int = 0) -> _Rule:
        return _Rule(0x06, 0, 0, action | error)

    def if_equal(value: int, no: int) -> _Rule:
        return _Rule(0x15, 0, no, value)

    def if_all_bits(bits: int) -> list[_Rule]:  # else the next one is left out
        return [_Rule(0x54, 0, 0, bits), if_equal(bits, 1)]

    refuse, unknown = end(0x00050000, 1), end(0x00050000, 38)  # EPERM, ENOSYS
    kill, allow = end(0x80000000), end(0x7FFF0000)
    number, kind = load(0), load(4)
    flags, command, mmap_flags = (load(16 + 8 * argument) for argument in (0, 1, 3))
    rules = [kind, _Rule(0x15, 1, 0, machine), kill, number, _Rule(0x35, 0, 1, 0x40000000), kill]
    for numbers in REFUSED.values():
        if numbers[column] >= 0:
            rules += [if_equal(numbers[column], 1), refuse]
    # glibc makes threads by clone where clone3 is unknown; what is no thread is a new process.
    rules += [if_equal(CLONE3[column], 1), unknown]
    rules += [if_equal(CLONE[column], 5), flags, *if_all_bits(0x00010000), allow, refuse]
    rules += [if_equal(FCNTL[column], 6), command]
    rules += [if_equal(F_SETOWN, 1), refuse, if_equal(F_SETOWN_EX, 1), refuse, allow]
    # Memory that is shared (1) and no file's (0x20) is not counted by RLIMIT_DATA.
    rules += [if_equal(MMAP[column], 5), mmap_flags, *if_all_bits(0x21), refuse, allow]
    return [*rules, allow]
