/* Lets the programs of a test host see another time of day, and an I/O error where one file is read.
 *
 * The host's /etc/ld.so.preload names it, so every program that uses the C library has it: shells, coreutils,
 * sshd, servers. What it does is read from a file that is mapped into all of them (struct faults); zeros: nothing.
 * The kernel's own clock (times of files) goes on, and so does a file that replaces the damaged one.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct faults {
    int64_t clock_offset_s;
    uint64_t device, inode;
};

static const struct faults none;
static const volatile struct faults *faults = &none;

__attribute__((constructor)) static void map_faults(void)
{
    const char *path = getenv("TESTBED_FAULTS");
    int descriptor = open(path ? path : "/run/testbed-faults", O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return;
    void *mapped = mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, descriptor, 0);
    if (mapped != MAP_FAILED)
        faults = mapped;
    close(descriptor);
}

#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) \
        real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

/* ---------------------------------------------------------------------------------------------- the clock */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    REAL(clock_gettime);
    int failed = real(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += faults->clock_offset_s;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    REAL(gettimeofday);
    int failed = real(now, zone);
    if (!failed)
        now->tv_sec += faults->clock_offset_s;
    return failed;
}

time_t time(time_t *seconds)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (seconds)
        *seconds = now.tv_sec;
    return now.tv_sec;
}

/* -------------------------------------------------------------------------------------------- the bad file */
static int is_bad(int descriptor)
{
    struct stat found;
    int before = errno;
    int bad = faults->inode && fstat(descriptor, &found) == 0 && found.st_ino == faults->inode &&
              found.st_dev == faults->device;
    errno = bad ? EIO : before;
    return bad;
}

ssize_t read(int descriptor, void *to, size_t size)
{
    REAL(read);
    return is_bad(descriptor) ? -1 : real(descriptor, to, size);
}

ssize_t pread64(int descriptor, void *to, size_t size, off64_t offset)
{
    REAL(pread64);
    return is_bad(descriptor) ? -1 : real(descriptor, to, size, offset);
}

ssize_t pread(int descriptor, void *to, size_t size, off_t offset)
{
    return pread64(descriptor, to, size, offset);
}

ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *there, size_t size, unsigned flags)
{
    REAL(copy_file_range);
    return is_bad(from) ? -1 : real(from, at, to, there, size, flags);
}

/* The C library reads for a stream by a way of its own. */
static int is_bad_stream(FILE *stream)
{
    int bad = is_bad(fileno(stream));
    if (bad)
        stream->_flags |= 0x20; /* _IO_ERR_SEEN: what ferror() looks at */
    return bad;
}

size_t fread(void *restrict to, size_t size, size_t count, FILE *restrict stream)
{
    REAL(fread);
    return is_bad_stream(stream) ? 0 : real(to, size, count, stream);
}

#undef fread_unlocked
size_t fread_unlocked(void *restrict to, size_t size, size_t count, FILE *restrict stream)
{
    REAL(fread_unlocked);
    return is_bad_stream(stream) ? 0 : real(to, size, count, stream);
}

char *fgets(char *restrict to, int size, FILE *restrict stream)
{
    REAL(fgets);
    return is_bad_stream(stream) ? NULL : real(to, size, stream);
}
