"""Limits on the process that runs a student's file: memory, time, files, other processes.

Memory and time are limits of the system (rlimits). On Linux two more mechanisms are used, by its
system calls, since Python has no functions for them: Landlock, by which a process gives up files,
and seccomp, by which it gives up system calls. Neither needs rights, and nothing that the process
does afterwards takes them back.
"""

import contextlib
import ctypes
import errno
import os
import platform
import select
import socket
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

MEMORY_BYTES = 256 << 20  # beside what Python and PyTorch take themselves
ADDRESS_BYTES = 1 << 30  # likewise, of addresses: of files that are mapped, of stacks
THREADS = 64  # more than its user has
NOBODY = 65534  # as whom root's threads are counted, of which there may be any number
FILE_BYTES = 1 << 20  # of a file that is written, where nothing forbids to write
OPEN_FILES = 256

# System calls that are allowed, by their numbers for x86_64 and aarch64 (−1: it has none there);
# all others are refused. They concern the process itself and what it may read.
ALLOWED = (
    # files that are open, or may be opened, which Landlock says
    "read 0 63, write 1 64, readv 19 65, writev 20 66, pread64 17 67, pwrite64 18 68",
    "preadv 295 69, pwritev 296 70, preadv2 327 286, pwritev2 328 287, close 3 57",
    "close_range 436 436, lseek 8 62, stat 4 -1, fstat 5 80, lstat 6 -1, statx 332 291",
    "newfstatat 262 79, statfs 137 43, fstatfs 138 44, access 21 -1, faccessat 269 48",
    "faccessat2 439 439, readlink 89 -1, readlinkat 267 78, getdents 78 -1, getdents64 217 61",
    "getcwd 79 17, chdir 80 49, fchdir 81 50, umask 95 166, fadvise64 221 223, readahead 187 213",
    "dup 32 23, dup2 33 -1, dup3 292 24, pipe 22 -1, pipe2 293 59, poll 7 -1, ppoll 271 73",
    "select 23 -1, pselect6 270 72, epoll_create 213 -1, epoll_create1 291 20, epoll_ctl 233 21",
    "epoll_wait 232 -1, epoll_pwait 281 22, epoll_pwait2 441 441, eventfd 284 -1, eventfd2 290 19",
    # memory that RLIMIT_DATA counts
    "munmap 11 215, mprotect 10 226, mremap 25 216, madvise 28 233, brk 12 214, mincore 27 232",
    "msync 26 227, membarrier 324 283, get_mempolicy 239 236, arch_prctl 158 -1",
    # its threads, its number and its clocks
    "futex 202 98, futex_waitv 449 449, set_robust_list 273 99, get_robust_list 274 100",
    "rseq 334 293, set_tid_address 218 96, gettid 186 178, getpid 39 172, getppid 110 173",
    "getpgrp 111 -1, getpgid 121 155, getsid 124 156, getuid 102 174, geteuid 107 175",
    "getgid 104 176, getegid 108 177, getresuid 118 148, getresgid 120 150, getgroups 115 158",
    "capget 125 90, sched_yield 24 124, sched_getaffinity 204 123, sched_getparam 143 121",
    "sched_getscheduler 145 120, sched_getattr 315 275, sched_get_priority_max 146 125",
    "sched_get_priority_min 147 126, sched_rr_get_interval 148 127, getpriority 140 141",
    "getcpu 309 168, nanosleep 35 101, clock_nanosleep 230 115, clock_gettime 228 113",
    "clock_getres 229 114, gettimeofday 96 169, time 201 -1, times 100 153, alarm 37 -1",
    "setitimer 38 103, getitimer 36 102, getrusage 98 165, getrlimit 97 163, setrlimit 160 164",
    "sysinfo 99 179, uname 63 160, getrandom 318 278",
    # signals that it gets, and its end
    "rt_sigaction 13 134, rt_sigprocmask 14 135, rt_sigreturn 15 139, rt_sigpending 127 136",
    "rt_sigtimedwait 128 137, rt_sigsuspend 130 133, sigaltstack 131 132, pause 34 -1",
    "restart_syscall 219 128, wait4 61 260, waitid 247 95, exit 60 93, exit_group 231 94",
)
# Those of which an argument says what they do: its place, the bits that count, the values allowed.
ALL_BITS, O_TRUNC, CLONE_THREAD = 0xFFFFFFFF, 0x200, 0x10000
MAP_SHARED, MAP_ANONYMOUS, MAP_GROWSDOWN = 1, 0x20, 0x100
OPEN_BITS = 3 | O_TRUNC, (0, 1, 2, 1 | O_TRUNC, 2 | O_TRUNC)  # to read, to write or both
ALLOWED_WITH = {
    "prlimit64 302 261": (0, ALL_BITS, (0,)),  # the process itself, not another by its number
    "prctl 157 167": (0, ALL_BITS, (15, 16, 0x53564D41)),  # names of threads and of memory
    "fcntl 72 25": (1, ALL_BITS, (0, 1, 2, 3, 4, 1030, 1032)),  # no locks, nor who gets signals
    "ioctl 16 29": (1, ALL_BITS, (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)),  # a terminal?
    # Landlock does not ask about a file that is opened for nothing (3), and its first two versions
    # not about one that is opened to be read, and emptied.
    "open 2 -1": (1, *OPEN_BITS),
    "openat 257 56": (2, *OPEN_BITS),
    "clone 56 220": (0, CLONE_THREAD, (CLONE_THREAD,)),  # what is no thread is a new process
    # Limits count neither memory that is shared and no file's nor what grows by itself.
    "mmap 9 222": (3, MAP_SHARED | MAP_ANONYMOUS | MAP_GROWSDOWN, (0, MAP_SHARED, MAP_ANONYMOUS)),
}
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column above, AUDIT_ARCH
CLONE3 = "clone3 435 435"
# Of all others some names, by which a report calls them.
REFUSED = (
    "socket 41 198, connect 42 203, socketpair 53 199, fork 57 -1, vfork 58 -1, execve 59 221",
    "kill 62 129, tkill 200 130, tgkill 234 131, ptrace 101 117, setpriority 141 140",
    "sched_setaffinity 203 122, sched_setscheduler 144 119, mkdir 83 -1, mkdirat 258 34",
    "unlink 87 -1, unlinkat 263 35, rename 82 -1, renameat 264 38, symlink 88 -1, chmod 90 -1",
    "fchmodat 268 53, flock 73 32, ftruncate 77 46, fsync 74 82, memfd_create 319 279",
    "mbind 237 235, set_mempolicy 238 237, personality 135 92, inotify_init1 294 26",
)
# What hands on the file that tells of refused calls; refused itself by a second filter after that.
TELLING = ("sendmsg 46 211", "seccomp 317 277")
ALLOW, REFUSE, UNKNOWN, TELL = 0x7FFF0000, 0x50000 | 1, 0x50000 | 38, 0x7FC00000  # EPERM, ENOSYS
RECEIVE_CALL, ANSWER_CALL = 0xC0502100, 0xC0182101
MAX_TOLD = 1000  # refused calls of a process of which the grader is told

PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 22, 38
NAMESPACES = 0x40000000 | 0x08000000  # of the network, and of System V's queues
USER_NAMESPACE = 0x10000000  # without which an ordinary user has none of the others
CAPSET = (126, 91)
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
O_PATH = 0x200000  # a place in the file system, which need not be readable
READ_FILE, READ_FOLDER, WRITE_FILE, EXECUTE = 4, 8, 2, 1
# Rights by Landlock's version: the first 13 in version 1, then to rename, to truncate, ioctl.
RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}


def confine_this_process(readable: Iterable[str], seconds: int, teller: int = -1) -> list[str]:
    """Give up, for good, what a student's functions do not need.

    Args:
        readable: folders that may be read; all others are closed, and none may be written.
        seconds: of processor time.
        teller: a socket to whoever reads `refused_calls`, if there is one.

    Returns:
        A sentence for each limit that this system does not have.
    """
    steps: dict[str, Callable[[], None]] = {
        "Memory, or processor time, is not limited here.": lambda: _limit_resources(seconds),
        "Files are not guarded here.": lambda: _forbid_other_files(_load_libc(), readable),
        "Other processes and the network are not guarded here.": lambda: _forbid_system_calls(
            _load_libc(), teller
        ),
    }
    missing = _missing_steps({"The number of threads is not limited here.": _limit_threads})
    with contextlib.suppress(OSError, AttributeError):  # on top, where they can be had
        own = USER_NAMESPACE if os.geteuid() else 0
        _call_checked(_load_libc().unshare, NAMESPACES | own)
        end_with_parent()
    return missing + _missing_steps(steps)


def _missing_steps(steps: dict[str, Callable[[], None]]) -> list[str]:
    """Take steps, and return the sentences of those that cannot be taken here."""
    missing = []
    for sentence, step in steps.items():
        try:
            step()
        except (ImportError, OSError, ValueError, AttributeError, KeyError):
            missing.append(sentence)
    return missing


def _limit_resources(seconds: int) -> None:
    import resource  # not on Windows

    used = {}
    with contextlib.suppress(OSError), open("/proc/self/status", "rb") as file:
        used = dict(line.split(b":", 1) for line in file)
    data, size = (int(used.get(n, b"0").split()[0]) << 10 for n in (b"VmData", b"VmSize"))
    limits = {
        resource.RLIMIT_DATA: (data or 1 << 30) + MEMORY_BYTES,
        resource.RLIMIT_AS: (size or 1 << 40) + ADDRESS_BYTES,
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_FSIZE: FILE_BYTES,
        resource.RLIMIT_NOFILE: OPEN_FILES,
        resource.RLIMIT_CORE: 0,
    }
    for which, limit in limits.items():
        _set_limit(which, limit)
    if sys.platform != "linux":
        raise OSError("RLIMIT_DATA does not count all memory.")


def _set_limit(which: int, limit: int) -> None:
    import resource

    hard = resource.getrlimit(which)[1]
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(which, (limit, limit))


def _limit_threads() -> None:
    """Let the user have a few more threads than now; of root's none would be counted."""
    import resource

    if sys.platform != "linux":
        raise OSError("Threads are counted by the user everywhere, but listed on Linux alone.")
    if os.getuid() == 0:
        os.chown(".", NOBODY, -1)  # its own empty folder: Matplotlib asks if it is to be used
        os.chmod(".", 0o755)
        os.setresuid(NOBODY, -1, -1)
    mine, threads = os.getuid(), 0
    for process in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{process}/status", "rb") as file:
            lines = dict(line.split(b":", 1) for line in file if b":" in line)
            is_mine = int(lines[b"Uid"].split()[0]) == mine
            threads += int(lines[b"Threads"]) if is_mine else 0
    _set_limit(resource.RLIMIT_NPROC, threads + THREADS)


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


def _forbid_system_calls(libc: ctypes.CDLL, teller: int) -> Any:
    """Give up root's rights, and system calls; `KeyError` where their numbers are not known."""
    column, machine = MACHINES[platform.machine()]
    version_3, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    _call_checked(libc.syscall, CAPSET[column], version_3, nothing)

    def install(program: list[_Rule], flags: int = 0) -> Any:
        rules = _Program(len(program), (_Rule * len(program))(*program))
        seccomp = int(TELLING[1].split()[1 + column])
        return _call_checked(libc.syscall, seccomp, 1, flags, ctypes.byref(rules))

    with contextlib.suppress(OSError):  # a container may tell somebody already
        with socket.socket(fileno=os.dup(teller)) as to_grader:
            listener = install(_system_call_rules(column, machine, tells=True), 8)
            try:
                socket.send_fds(to_grader, [b"."], [listener])
            finally:
                os.close(listener)
        return install(_rules_after_telling(column))
    return install(_system_call_rules(column, machine))


def refused_calls(connection: int) -> Iterator[str]:
    """Refuse, by EPERM, what a process may not call, and yield the calls, until it ends.

    After `MAX_TOLD` of them nobody listens any more: they are refused as unknown ones.

    Args:
        connection: the other end of its `teller`.
    """
    column, _ = MACHINES[platform.machine()]
    own = [*", ".join(REFUSED).split(", "), *ALLOWED_WITH]
    known = {call.split()[1 + column]: call.split()[0] for call in own}
    with socket.socket(fileno=os.dup(connection)) as student:
        _, files, *_ = socket.recv_fds(student, 1, 1)
    for listener in files:
        import fcntl

        waits = select.poll()
        waits.register(listener, select.POLLIN)
        try:
            for _ in range(MAX_TOLD):
                if waits.poll()[0][1] & select.POLLHUP:
                    break
                with contextlib.suppress(OSError):  # it was ended meanwhile
                    asked = fcntl.ioctl(listener, RECEIVE_CALL, bytes(80))
                    number, *_, call = struct.unpack_from("QIIi", asked)
                    yield known.get(str(call), f"number {call}")
                    answer = struct.pack("QqiI", number, 0, -errno.EPERM, 0)
                    fcntl.ioctl(listener, ANSWER_CALL, answer)
        finally:
            os.close(listener)  # or a call would wait for an answer for ever


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


def _rules_after_telling(column: int) -> list[_Rule]:
    """Return the second filter, which refuses what handed on the file that tells."""
    first, second = (int(call.split()[1 + column]) for call in TELLING)
    rules = [_Rule(0x20, 0, 0, 0), _Rule(0x15, 1, 0, first), _Rule(0x15, 0, 1, second)]
    return [*rules, _Rule(0x06, 0, 0, REFUSE), _Rule(0x06, 0, 0, ALLOW)]


def _system_call_rules(column: int, machine: int, tells: bool = False) -> list[_Rule]:
    """Return the filter, in the language of Berkeley's packet filter.

    A rule goes on with the next one where it holds (0x15: equal; 0x35: as large), and else
    leaves out as many as it says. What is refused is told, or fails by itself.
    """

    def load(place: int) -> _Rule:
        return _Rule(0x20, 0, 0, place)

    def end(action: int) -> _Rule:
        return _Rule(0x06, 0, 0, action)

    def if_equal(value: int, no: int = 1) -> _Rule:
        return _Rule(0x15, 0, no, value)

    def on(call: str, *steps: _Rule) -> list[_Rule]:
        number = int(call.split()[1 + column])
        return [if_equal(number, len(steps)), *steps] if number >= 0 else []

    refuse, unknown = end(TELL if tells else REFUSE), end(UNKNOWN)
    kill, allow = end(0x80000000), end(ALLOW)
    kind, number = load(4), load(0)
    rules = [kind, _Rule(0x15, 1, 0, machine), kill, number, _Rule(0x35, 0, 1, 0x40000000), kill]
    for call in [*", ".join(ALLOWED).split(", "), *(TELLING if tells else ())]:
        rules += on(call, allow)
    for call, (place, bits, values) in ALLOWED_WITH.items():
        each = [rule for value in values for rule in (if_equal(value), allow)]
        rules += on(call, load(16 + 8 * place), _Rule(0x54, 0, 0, bits), *each, refuse)
    rules += on(CLONE3, unknown)  # glibc then makes threads by clone
    return [*rules, refuse]
