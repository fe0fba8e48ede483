/*
 * A close that cannot write the pool to the medium says so, if it closes the last handle.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <wollemi.h>

static void expect_at(int line, int found, int wanted) {
    if (found != wanted) {
        fprintf(stderr, "failing_close.c:%d: %s in place of %s: %s\n", line, wollemi_status_name(found),
                wollemi_status_name(wanted), wollemi_message());
        exit(1);
    }
}
#define EXPECT(call, wanted) expect_at(__LINE__, (call), (wanted))
#define OK(call) EXPECT(call, WOLLEMI_OK)

/* Makes each msync of this thread fail from now on. */
static void fail_write_out(void) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_msync, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EIO),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof steps / sizeof steps[0], steps};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        perror("prctl");
        exit(1);
    }
}

int main(int argc, char **argv) {
    wollemi_db *db;
    wollemi_map *map;
    if (argc != 2) {
        return 2;
    }
    OK(wollemi_open(argv[1], NULL, &db));
    OK(wollemi_map_open(db, "m", &map));
    OK(wollemi_put(map, "k", 1, "v", 1));
    fail_write_out();
    OK(wollemi_map_close(map));
    EXPECT(wollemi_close(db), WOLLEMI_ERROR_SYSTEM);
    EXPECT(wollemi_close(db), WOLLEMI_ERROR_HANDLE);
    puts("the failed close was reported");
    return 0;
}
