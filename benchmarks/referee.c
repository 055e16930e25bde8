/* A referee of a few lines, to compare ours with: it does what a referee must do and nothing else.
 *
 * usage: referee GAMES FIRST [ARGUMENT...] -- SECOND [ARGUMENT...]
 *
 * Plays GAMES games of manchester(7,7) (docs/rules.md: end=either, pie, the first move does not repeat)
 * in the Manchester protocol (docs/protocol.md), one after the other, with fresh processes for each: two
 * pipes a bot, blocking reads and writes, no clock, no record, no verdict on anything but legality.
 * Prints one JSON object.  All numbers are of one game, except for the number of games and their
 * "total_wall_s".  "moving_wall_s" is from the second bot's first reply, when both bots are known to run,
 * until the last END is written, the median of all games; CPU is the referee's own (RUSAGE_SELF), the
 * mean of all games: "play" is from before the first START is written, "total" contains processes' start
 * and end.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PITS = 7, SEEDS = 7, CELLS = 2 * PITS + 2, SOUTH = 0, NORTH = 1, MAX_LINE = 256, MAX_MOVES = 4096 };

typedef struct {
    pid_t pid;
    int to, from;  /* file descriptors */
    size_t held;   /* bytes of early output in `buffer` */
    char buffer[MAX_LINE];
} Bot;

typedef struct {
    char text[MAX_MOVES]; /* the moves, separated by commas */
    size_t length;
    int moves;
    int cells[CELLS]; /* as on the wire: North's pits, North's store, South's pits, South's store */
} Game;

typedef struct {
    double wall, cpu;
} Stamp;

static void fail(const char *why)
{
    fprintf(stderr, "referee: %s\n", why);
    exit(1);
}

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static Stamp now(void)
{
    struct timespec wall;
    struct rusage usage;
    clock_gettime(CLOCK_MONOTONIC, &wall);
    getrusage(RUSAGE_SELF, &usage);
    return (Stamp){(double)wall.tv_sec + (double)wall.tv_nsec / 1e9,
                   seconds(usage.ru_utime) + seconds(usage.ru_stime)};
}

static int ascending(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    return (values[count / 2] + values[(count - 1) / 2]) / 2;
}

static void make_pipe(int ends[2])
{
    if (pipe(ends))
        fail("no pipe");
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
}

static void spawn(Bot *bot, char **command)
{
    int in[2], out[2];
    make_pipe(in);
    make_pipe(out);
    bot->pid = fork();
    if (bot->pid < 0)
        fail("no process");
    if (bot->pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        execvp(command[0], command);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    bot->to = in[1];
    bot->from = out[0];
    bot->held = 0;
}

static void say(Bot *bot, const char *format, ...)
{
    char line[MAX_LINE];
    va_list values;
    va_start(values, format);
    int length = vsnprintf(line, sizeof line, format, values);
    va_end(values);
    if (write(bot->to, line, (size_t)length) != length)
        fail("a bot does not read");
}

/* The bot's next line, without its line feed; what came after it is kept. */
static void hear(Bot *bot, char line[MAX_LINE])
{
    char *feed;
    while (!(feed = memchr(bot->buffer, '\n', bot->held))) {
        ssize_t got = read(bot->from, bot->buffer + bot->held, sizeof bot->buffer - bot->held);
        if (got <= 0)
            fail("a bot is gone, or floods");
        bot->held += (size_t)got;
    }
    size_t length = (size_t)(feed - bot->buffer);
    memcpy(line, bot->buffer, length);
    line[length] = '\0';
    bot->held -= length + 1;
    memmove(bot->buffer, feed + 1, bot->held);
}

static void note(Game *game, const char *move)
{
    int length = snprintf(game->text + game->length, sizeof game->text - game->length, "%s%s",
                          game->moves++ ? "," : "", move);
    game->length += (size_t)length;
    if (game->length >= sizeof game->text)
        fail("the game is too long");
}

static void board(const Game *game, char *text)
{
    for (int i = 0; i < CELLS; i++)
        text += sprintf(text, i ? ",%d" : "%d", game->cells[i]);
}

/* Sows, captures, collects at the end.  Returns the seat to move or, of a game that is over, -1 minus
 * the seat that would have been. */
static int apply(Game *game, int seat, int pit, int opening)
{
    int *cells = game->cells;
    int first = seat == NORTH ? 0 : PITS + 1, store = first + PITS;
    int skipped = seat == NORTH ? CELLS - 1 : PITS;
    int at = first + pit - 1, seeds = cells[at], next = 1 - seat;
    if (!seeds)
        fail("a bot plays an empty pit");
    cells[at] = 0;
    for (; seeds; seeds--) {
        do
            at = (at + 1) % CELLS;
        while (at == skipped);
        cells[at]++;
    }
    if (at == store && !opening) {
        next = seat;
    } else if (at >= first && at < store && cells[at] == 1 && cells[2 * PITS - at]) {
        cells[store] += cells[2 * PITS - at] + 1;
        cells[2 * PITS - at] = cells[at] = 0;
    }
    int left[2] = {0, 0};
    for (int i = 0; i < PITS; i++) {
        left[NORTH] += cells[i];
        left[SOUTH] += cells[PITS + 1 + i];
    }
    if (left[NORTH] && left[SOUTH])
        return next;
    for (int i = 0; i < PITS; i++)
        cells[i] = cells[PITS + 1 + i] = 0;
    cells[PITS] += left[NORTH];
    cells[CELLS - 1] += left[SOUTH];
    return -1 - next;
}

/* From START to END; bots[SOUTH] makes the first move.  Returns when both bots had answered once. */
static Stamp play(Bot *bots[2], Game *game)
{
    Stamp running = {0, 0};
    char line[MAX_LINE], text[MAX_LINE];
    game->moves = 0;
    game->length = 0;
    for (int i = 0; i < CELLS; i++)
        game->cells[i] = i % (PITS + 1) == PITS ? 0 : SEEDS;
    say(bots[NORTH], "START;North\n");
    say(bots[SOUTH], "START;South\n");
    for (int seat = SOUTH; seat >= 0;) {
        hear(bots[seat], line);
        if (game->moves == 1)
            running = now(); /* the second move is always the second bot's */
        if (strcmp(line, "SWAP") == 0 && game->moves == 1) {
            Bot *swapper = bots[NORTH];
            bots[NORTH] = bots[SOUTH];
            bots[SOUTH] = swapper;
            note(game, "SWAP");
            board(game, text);
            say(bots[NORTH], "CHANGE;SWAP;%s;YOU\n", text);
            continue;
        }
        int pit = strncmp(line, "MOVE;", 5) == 0 ? atoi(line + 5) : 0;
        if (pit < 1 || pit > PITS)
            fail("a bot says nonsense");
        int next = apply(game, seat, pit, game->moves == 0);
        note(game, line + 5);
        board(game, text);
        int last = next < 0 ? -1 - next : next;
        say(bots[1 - last], "CHANGE;%d;%s;%s\n", pit, text, next < 0 ? "END" : "OPP");
        say(bots[last], "CHANGE;%d;%s;%s\n", pit, text, next < 0 ? "END" : "YOU");
        seat = next;
    }
    say(bots[NORTH], "END\n");
    say(bots[SOUTH], "END\n");
    return running;
}

int main(int argc, char **argv)
{
    int games = argc > 1 ? atoi(argv[1]) : 0, cut = 2;
    while (cut < argc && strcmp(argv[cut], "--") != 0)
        cut++;
    if (games < 1 || cut == 2 || cut + 1 >= argc) {
        fprintf(stderr, "usage: referee GAMES FIRST [ARGUMENT...] -- SECOND [ARGUMENT...]\n");
        return 2;
    }
    argv[cut] = NULL;
    Game game, before;
    double *moving_s = calloc((size_t)games, sizeof *moving_s), play_cpu_s = 0;
    if (!moving_s)
        fail("no memory");
    Stamp begin = now();
    for (int i = 0; i < games; i++) {
        Bot first, second, *bots[2] = {&first, &second};
        spawn(&first, argv + 2);
        spawn(&second, argv + cut + 1);
        Stamp start = now();
        Stamp running = play(bots, &game), end = now();
        moving_s[i] = end.wall - running.wall;
        play_cpu_s += end.cpu - start.cpu;
        for (int j = 0; j < 2; j++) {
            close(bots[j]->to);
            close(bots[j]->from);
            waitpid(bots[j]->pid, NULL, 0);
        }
        if (i && strcmp(game.text, before.text) != 0)
            fail("the same bots played different games");
        before = game;
    }
    Stamp end = now();
    char text[MAX_LINE];
    board(&game, text);
    printf("{\"games\": %d, \"moves\": %d, \"game\": \"%s\", \"board\": \"%s\", ", games, game.moves, game.text,
           text);
    printf("\"moving_wall_s\": %.9f, \"play_cpu_s\": %.6f, \"total_cpu_s\": %.6f, \"total_wall_s\": %.6f}\n",
           median(moving_s, games), play_cpu_s / games, (end.cpu - begin.cpu) / games, end.wall - begin.wall);
    free(moving_s);
    return 0;
}
