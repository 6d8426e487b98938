// Holds a pod's namespaces open: reaps what is left to it, exits when asked to.
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>

int main(void) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGCHLD);
    // Blocked, so that the kernel keeps them for process 1 although it has no handler for them.
    sigprocmask(SIG_BLOCK, &signals, NULL);
    while (sigwaitinfo(&signals, NULL) == SIGCHLD)
        while (waitpid(-1, NULL, WNOHANG) > 0) {}
    return 0;
}
