/* Lets calls of the system fail on the files of one folder, and logs what reaches the disk.

   faults.py compiles it and has it preloaded. fault_arm() says which folder is watched and which
   call fails, of those that are counted; fault_log() where the log goes. A log has an entry for
   each call that changes names, and one with the whole content for each file that is flushed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPEN = 1, WRITE = 2, FLUSH = 4, RENAME = 8, REMOVE = 16, MAKE = 32, READ = 64 };
enum { NOTHING, FAIL_ONCE, FAIL_FROM, SHORT_WRITE, KILL };

static char watched[PATH_MAX];
static int kinds, action, error_number, log_handle = -1;
static long place, counted;

void fault_arm(const char *folder, int which, int what, int number, long nth) {
    snprintf(watched, sizeof watched, "%s", folder);
    kinds = which, action = what, error_number = number, place = nth, counted = 0;
}
long fault_count(void) { return counted; }
void fault_log(int handle) { log_handle = handle; }

/* The absolute path of a name in a folder that is open. */
static const char *absolute(int folder, const char *name, char *into) {
    char link[64], base[PATH_MAX / 2] = "";
    if (name[0] == '/') return name;
    if (folder == AT_FDCWD) {
        if (!getcwd(base, sizeof base)) base[0] = 0;
    } else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t size = readlink(link, base, sizeof base - 1);
        base[size < 0 ? 0 : size] = 0;
    }
    snprintf(into, PATH_MAX, "%s/%s", base, name);
    return into;
}
static int is_watched(const char *path) {
    size_t size = strlen(watched);
    return size && !strncmp(path, watched, size) && (path[size] == '/' || !path[size]);
}
static const char *path_of(int handle, char *into) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t size = readlink(link, into, PATH_MAX - 1);
    into[size < 0 ? 0 : size] = 0;
    return into;
}
/* Counts a call; returns 1 if it is to fail, 2 if it is to write less. */
static int strikes(int kind) {
    if (!(kinds & kind)) return 0;
    long now = __sync_add_and_fetch(&counted, 1);
    if (action == KILL && now == place) raise(SIGKILL);
    if (action == SHORT_WRITE && now == place) return kind == WRITE ? 2 : 0;
    if ((action == FAIL_ONCE && now == place) || (action == FAIL_FROM && now >= place)) {
        errno = error_number;
        return 1;
    }
    return 0;
}
static ssize_t real_write(int handle, const void *data, size_t size) {
    static ssize_t (*next)(int, const void *, size_t);
    if (!next) next = dlsym(RTLD_NEXT, "write");
    return next(handle, data, size);
}
static void note(char what, const char *one, const char *other, const void *data, long size) {
    if (log_handle < 0) return;
    char head[2 * PATH_MAX + 64];
    int length = snprintf(head, sizeof head, "%c\t%ld\t%s\t%s\n", what, size, one, other);
    real_write(log_handle, head, length);
    for (long done = 0; done < size;) {
        ssize_t count = real_write(log_handle, (const char *)data + done, size - done);
        if (count <= 0) break;
        done += count;
    }
}

#define NEXT(name) \
    static __typeof__(name) *next; \
    if (!next) next = dlsym(RTLD_NEXT, #name)
#define MODE \
    mode_t mode = 0; \
    if (flags & (O_CREAT | __O_TMPFILE)) { \
        va_list rest; \
        va_start(rest, flags); \
        mode = va_arg(rest, mode_t); \
        va_end(rest); \
    }
#define OPENING(call) \
    char room[PATH_MAX]; \
    int saved = errno; \
    const char *path = absolute(folder, name, room); \
    int writes = (flags & O_ACCMODE) != O_RDONLY; \
    errno = saved; \
    if (is_watched(path) && strikes(writes ? OPEN : READ)) return -1; \
    int handle = call; \
    if (handle >= 0 && is_watched(path) && (flags & O_CREAT)) note('C', path, "", 0, 0); \
    return handle;

int open(const char *name, int flags, ...) { NEXT(open); int folder = AT_FDCWD; MODE OPENING(next(name, flags, mode)) }
int open64(const char *name, int flags, ...) { NEXT(open64); int folder = AT_FDCWD; MODE OPENING(next(name, flags, mode)) }
int openat(int folder, const char *name, int flags, ...) { NEXT(openat); MODE OPENING(next(folder, name, flags, mode)) }
int openat64(int folder, const char *name, int flags, ...) { NEXT(openat64); MODE OPENING(next(folder, name, flags, mode)) }

ssize_t write(int handle, const void *data, size_t size) {
    char room[PATH_MAX];
    if (watched[0] && handle != log_handle && is_watched(path_of(handle, room))) {
        int struck = strikes(WRITE);
        if (struck == 1) return -1;
        if (struck == 2 && size > 1) size /= 2;
    }
    return real_write(handle, data, size);
}
static int flushing(int handle, int (*next)(int)) {
    char room[PATH_MAX];
    struct stat info;
    if (!watched[0] || !is_watched(path_of(handle, room))) return next(handle);
    if (strikes(FLUSH)) return -1;
    if (log_handle < 0 || fstat(handle, &info)) return 0;
    if (S_ISDIR(info.st_mode)) {
        note('D', room, "", 0, 0);
        return 0;
    }
    char *content = malloc(info.st_size + 1);
    ssize_t size = pread(handle, content, info.st_size, 0);
    note('F', room, "", content, size < 0 ? 0 : size);
    free(content);
    return 0;
}
int fsync(int handle) { NEXT(fsync); return flushing(handle, next); }
int fdatasync(int handle) { NEXT(fdatasync); return flushing(handle, next); }

#define TWO(call, one_folder, other_folder) \
    char a[PATH_MAX], b[PATH_MAX]; \
    const char *from = absolute(one_folder, one, a), *to = absolute(other_folder, other, b); \
    int ours = is_watched(from) || is_watched(to); \
    if (ours && strikes(RENAME)) return -1; \
    int code = call; \
    if (ours && !code) note('R', from, to, 0, 0); \
    return code;
int rename(const char *one, const char *other) { NEXT(rename); TWO(next(one, other), AT_FDCWD, AT_FDCWD) }
int renameat(int x, const char *one, int y, const char *other) { NEXT(renameat); TWO(next(x, one, y, other), x, y) }

#define ONE(kind, letter, call, folder) \
    char room[PATH_MAX]; \
    const char *path = absolute(folder, name, room); \
    int ours = is_watched(path); \
    if (ours && strikes(kind)) return -1; \
    int code = call; \
    if (ours && !code) note(letter, path, "", 0, 0); \
    return code;
int unlink(const char *name) { NEXT(unlink); ONE(REMOVE, 'U', next(name), AT_FDCWD) }
int rmdir(const char *name) { NEXT(rmdir); ONE(REMOVE, 'U', next(name), AT_FDCWD) }
int unlinkat(int folder, const char *name, int flags) { NEXT(unlinkat); ONE(REMOVE, 'U', next(folder, name, flags), folder) }
int mkdir(const char *name, mode_t mode) { NEXT(mkdir); ONE(MAKE, 'M', next(name, mode), AT_FDCWD) }
int mkdirat(int folder, const char *name, mode_t mode) { NEXT(mkdirat); ONE(MAKE, 'M', next(folder, name, mode), folder) }
