/* A bot that answers at once: what a game with it costs is what the referee costs.
 *
 * usage: instant_bot [first | last] [swap] [exit]
 *
 * Speaks the Manchester protocol (docs/protocol.md) for Kalah with any number of pits.  Plays its first
 * pit that is not empty, with `last` its last one; swaps only with `swap`; with `exit` it ends before it
 * has read anything, so that starting a process can be measured alone.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER_SIZE = 4096, MAX_CELLS = 64 };

static int play_last, may_swap, is_north;

static void say(const char *line, size_t length)
{
    while (length > 0) {
        ssize_t written = write(STDOUT_FILENO, line, length);
        if (written <= 0)
            _exit(0); /* the referee is gone */
        line += written;
        length -= (size_t)written;
    }
}

/* The number, from 1, of the pit to play on a board text: p pits and a store, North's first. */
static int choose(const char *text)
{
    int cells[MAX_CELLS], count = 0;
    for (;;) {
        int seeds = 0;
        while (*text >= '0' && *text <= '9')
            seeds = seeds * 10 + (*text++ - '0');
        cells[count++] = seeds;
        if (*text++ != ',' || count == MAX_CELLS)
            break;
    }
    int pits = count / 2 - 1;
    const int *own = is_north ? cells : cells + pits + 1;
    if (play_last) {
        for (int pit = pits; pit >= 1; pit--)
            if (own[pit - 1])
                return pit;
    } else {
        for (int pit = 1; pit <= pits; pit++)
            if (own[pit - 1])
                return pit;
    }
    _exit(1); /* asked to move without a move */
}

static void answer(const char *board)
{
    if (may_swap && is_north) { /* North's first reply is the only place for it */
        may_swap = is_north = 0;
        say("SWAP\n", 5);
        return;
    }
    may_swap = 0;
    int pit = choose(board);
    char line[16] = "MOVE;";
    size_t length = 5;
    if (pit >= 10)
        line[length++] = (char)('0' + pit / 10);
    line[length++] = (char)('0' + pit % 10);
    line[length++] = '\n';
    say(line, length);
}

/* One line of the referee, without its line feed and with a NUL instead. */
static void hear(const char *line, size_t length)
{
    if (strncmp(line, "CHANGE;", 7) == 0) {
        const char *board = strchr(line + 7, ';');
        if (!board)
            _exit(1);
        if (strncmp(line + 7, "SWAP;", 5) == 0)
            is_north = 1;
        if (strcmp(line + length - 4, ";YOU") == 0)
            answer(board + 1);
    } else if (strncmp(line, "START;", 6) == 0) {
        is_north = line[6] == 'N';
        if (!is_north) {
            /* South moves first, from a full row: all its pits hold seeds, and no swap is offered yet.
             * The course's board has seven pits. */
            say(play_last ? "MOVE;7\n" : "MOVE;1\n", 7);
            may_swap = 0;
        }
    } else {
        _exit(0); /* END */
    }
}

int main(int argc, char **argv)
{
    char buffer[BUFFER_SIZE];
    size_t held = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "first") == 0)
            play_last = 0;
        else if (strcmp(argv[i], "last") == 0)
            play_last = 1;
        else if (strcmp(argv[i], "swap") == 0)
            may_swap = 1;
        else if (strcmp(argv[i], "exit") == 0)
            return 0;
        else
            return 2;
    }
    for (;;) {
        ssize_t got = read(STDIN_FILENO, buffer + held, sizeof buffer - held);
        if (got <= 0)
            return 0;
        held += (size_t)got;
        char *line = buffer, *feed;
        while ((feed = memchr(line, '\n', held - (size_t)(line - buffer)))) {
            *feed = '\0';
            hear(line, (size_t)(feed - line));
            line = feed + 1;
        }
        held -= (size_t)(line - buffer);
        memmove(buffer, line, held);
    }
}
