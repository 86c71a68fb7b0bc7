/* Stands for a built candidate: `program reference OUT` and `program trial REF`, told by the recipe what to do. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char recipe[1 << 18];

static void say_file(const char *path) {
    FILE *file = fopen(path, "r");
    char content[256] = "";
    if (file) {
        content[fread(content, 1, sizeof content - 1, file)] = 0;
        fclose(file);
    }
    printf("kept=%s\n", file ? content : "?");
}

static void leave_child(int own_session, const char *path) {
    if (fork() == 0) {
        if (own_session) setsid();
        FILE *file = fopen(path, "w");
        fprintf(file, "%d\n", (int)getpid());
        fclose(file);
        sleep(600);
        _exit(0);
    }
    while (access(path, R_OK)) usleep(1000);
}

static void say_limits(void) {
    struct rlimit limit;
    const int which[] = {RLIMIT_AS, RLIMIT_DATA, RLIMIT_FSIZE, RLIMIT_NOFILE, RLIMIT_CORE};
    for (int i = 0; i < 5; i++) {
        getrlimit(which[i], &limit);
        printf("%llu ", (unsigned long long)limit.rlim_cur);
    }
    int open = 0;
    for (int i = 0; i < 1024; i++) open += fcntl(i, F_GETFD) >= 0;
    printf("open=%d group=%d folder=%d\n", open, getpgrp() == getpid(), access("recipe", R_OK) == 0);
}

int main(int count, char **words) {
    const size_t size = fread(recipe, 1, sizeof recipe - 1, stdin);
    char *rest = strchr(recipe, ' ');
    if (count != 3) return 9;
    if (strcmp(words[1], "reference") == 0) {
        FILE *out = fopen(words[2], "w");
        fputs(recipe, out);
        fclose(out);
    }
    if (rest) *rest++ = 0;
    if (strcmp(recipe, "echo") == 0) printf("%s %s %zu\n", words[1], words[2], size);
    if (strcmp(recipe, "kept") == 0) say_file(words[2]);
    if (strcmp(recipe, "limits") == 0) say_limits();
    if (strcmp(recipe, "exit") == 0) return atoi(rest);
    if (strcmp(recipe, "raise") == 0) raise(atoi(rest));
    if (strcmp(recipe, "illegal") == 0) __builtin_trap();
    if (strcmp(recipe, "sleep") == 0) usleep((useconds_t)(1e6 * atof(rest)));
    if (strcmp(recipe, "say") == 0) fwrite(rest, 1, strlen(rest), stdout);
    if (strcmp(recipe, "complain") == 0) fprintf(stderr, "%s", rest), exit(3);
    if (strcmp(recipe, "much") == 0) for (long i = 0; i < 200000; i++) putchar('a' + i % 26);
    if (strcmp(recipe, "memory") == 0) printf("%s\n", malloc((size_t)atol(rest)) ? "got" : "refused");
    if (strcmp(recipe, "write") == 0) {
        char part[4096] = "x";
        const int file = open("large", O_WRONLY | O_CREAT, 0600);
        for (long left = atol(rest); left > 0; left -= (long)sizeof part) if (write(file, part, sizeof part) < 0) return 7;
    }
    if (strcmp(recipe, "stray") == 0) leave_child(0, rest);
    if (strcmp(recipe, "daemon") == 0) leave_child(1, rest);
    if (strcmp(recipe, "held") == 0) {
        leave_child(1, rest);
        strcat(rest, ".go");
        while (access(rest, R_OK)) usleep(1000);
    }
    if (strcmp(recipe, "litter") == 0) if (system("mkdir -p a/b/c && touch a/b/c/d && chmod 0 a/b")) return 8;
    if (strcmp(recipe, "dig") == 0)
        for (long left = atol(rest); left > 0; left--) if (mkdir("d", 0700) || mkdir("e", 0700) || chdir(left % 2 ? "d" : "e")) return 8;
    return 0;
}
