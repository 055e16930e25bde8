"""Environment variables that pass a bot's limits to its runtime.  Pure.

A Java virtual machine, Node, Go, .NET and most libraries for numbers size their heap and their threads by the
host.  On a large host such a bot exceeds its memory limit without needing the memory.  These variables name
the bot's own limits instead.  The options in the bot's own command line have priority.
"""

from collections.abc import Mapping, Sequence
from itertools import islice

from referee.judge.limits import Limits

FIXED_MB = 96
"""Memory of a virtual machine beside its heap, whatever the heap's size: classes, compiled code, the compiler
at work, stacks."""
PART_BESIDE_HEAP = 8
"""Divisor of the memory limit for the memory that grows with the heap: the collector's tables, direct
buffers."""
LEAST_HEAP_PART = 4
"""Divisor of the memory limit for the least heap of a bot with a small limit."""
GO_PART = 10
"""Divisor of the memory limit for memory that Go's limit does not count: the program itself and memory of
C."""
PROCESSES_PER_CORE = 4
"""Processes allowed by the limit for each thread of a pool: a runtime that sees 16 cores starts up to 30
threads, which must fit into the limit of 64."""
MOST_COLLECTOR_THREADS = 4
"""Most threads of Java's collector: more do not collect a heap of up to 2 GB faster; a Java on 64 cores would
start 43."""
MOST_DOTNET_PROCESSORS = 9
"""Most processors for .NET, which reads numbers as hexadecimal, some versions this one as decimal: one digit
is the same in both."""

JAVA_VARIABLE = "JAVA_TOOL_OPTIONS"
JAVA_LAUNCHER_VARIABLE = "JDK_JAVA_OPTIONS"
"""Read by the ``java`` program since Java 9, and by no Java 8, which does not start with -Xlog."""
NODE_VARIABLE = "NODE_OPTIONS"
JAVA_VARIABLES = (JAVA_VARIABLE, JAVA_LAUNCHER_VARIABLE, "_JAVA_OPTIONS")
LISTS = (JAVA_VARIABLE, JAVA_LAUNCHER_VARIABLE, NODE_VARIABLE)
"""Variables with a list of options, of which the last one counts."""

JAVA_BASICS = (
    # First, since it makes Java 9 and later skip options that they do not have.  Java 8 does not apply it to
    # the rest of the same variable (jdk8u, arguments.cpp): all others here must be known to Java 8u191.
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:+DisplayVMOutputToStderr",
    # The report of a fatal error goes to standard output whatever the option above says, and would be taken
    # as a move; the reason, such as a failed allocation, has been printed on standard error before it.
    "-XX:+SuppressFatalErrorMessage",
    "-XX:-UsePerfData",
)
JAVA_LOGGING = "-Xlog:disable -Xlog:all=warning:stderr"
"""Java's own warnings, to standard error; by default they are printed to standard output."""
OWN_HEAP = (
    *("-Xmx", "-Xms", "-Xmn", "-mx", "-ms", "-XX:MaxHeapSize", "-XX:InitialHeapSize", "-XX:MinHeapSize"),
    *("-XX:NewSize", "-XX:MaxNewSize", "-XX:OldSize", "-XX:SoftMaxHeapSize", "-XX:+AggressiveHeap"),
    *("-XX:MaxRAM", "-XX:MinRAM", "-XX:InitialRAM"),
)
"""Options with which a heap size of Kalarena's could be smaller than the initial size, and Java would not
start."""
OWN_COLLECTOR = ("-Xincgc", "-Xgcpolicy", "-XX:+AggressiveHeap", "-XX:G1", "-XX:Z", "-XX:Shenandoah")
"""Options that choose a collector, beside all -XX options with GC in their names.  Java does not start with
two collectors."""
OPTION_FILES = ("-XX:Flags=", "-XX:VMOptionsFile=", "@")
"""Options that are not on the command line."""
JAVA_OPTIONS_WITH_ARGUMENT = (
    *("-cp", "-classpath", "--class-path", "-p", "--module-path", "--upgrade-module-path", "--add-modules"),
    *("--add-opens", "--add-exports", "--add-reads", "--patch-module", "--limit-modules", "--source"),
)
JAVA_PROGRAM_FOLLOWS = ("-jar", "-m", "--module")

THREAD_VARIABLES = (
    *("GOMAXPROCS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"),
    *("NUMEXPR_NUM_THREADS", "NUMEXPR_MAX_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS"),
    *("RAYON_NUM_THREADS", "TOKIO_WORKER_THREADS"),
)


def heap_mb(memory_mb: int) -> int:
    """Return the size of a heap, in MiB, with which a virtual machine stays within its memory limit."""
    return max(memory_mb // LEAST_HEAP_PART, memory_mb - FIXED_MB - memory_mb // PART_BESIDE_HEAP)


def thread_count(limits: Limits, cores: int) -> int:
    """Return the number of threads that a runtime should start for computing."""
    return max(1, min(cores, limits.processes // PROCESSES_PER_CORE))


def runtime_settings(
    command: Sequence[str], limits: Limits, cores: int, environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the variables to set for a bot, by name.

    Args:
        command: The bot's command.
        limits: The limits of the bot.
        cores: The number of cores that the bot may run on.
        environment: The environment that the bot inherits, if it inherits one.  A variable that is set there
            keeps its value; of a variable with options, the inherited ones come last, so that they count.
    """
    inherited = environment or {}
    heap, threads = heap_mb(limits.memory_mb), thread_count(limits, cores)
    java_inherited = [word for name in JAVA_VARIABLES for word in _option_words(inherited.get(name, ""))]
    hard_limit = f"0x{heap << 20:x}"
    processors = str(min(threads, MOST_DOTNET_PROCESSORS))
    wanted = {
        JAVA_VARIABLE: " ".join(_java_options(command, java_inherited, limits.memory_mb, threads)),
        JAVA_LAUNCHER_VARIABLE: JAVA_LOGGING,
        NODE_VARIABLE: f"--max-old-space-size={heap}",
        "UV_THREADPOOL_SIZE": str(max(2, min(threads, 4))),
        "DENO_V8_FLAGS": f"--max-old-space-size={heap}",
        "GOMEMLIMIT": f"{limits.memory_mb - limits.memory_mb // GO_PART}MiB",
        "DOTNET_GCHeapHardLimit": hard_limit,
        "COMPlus_GCHeapHardLimit": hard_limit,
        "DOTNET_gcServer": "0",
        "COMPlus_gcServer": "0",
        "DOTNET_PROCESSOR_COUNT": processors,
        "COMPlus_PROCESSOR_COUNT": processors,
        # .NET 7 to 9 would make a file of 2 TB in memory for compiled code, beyond the limit of a file's size
        # (SIGXFSZ before Main).  The tiers that refuse such files make .NET do without it.
        "DOTNET_EnableWriteXorExecute": "0",
        # With max-heap-size Mono 6.8 ends by an assertion of its own (sgen-gc.c) when the heap is full.
        "MONO_GC_PARAMS": f"soft-heap-limit={heap}m",
        # Each arena of the C library keeps free memory of its own, by default 8 arenas for each core.
        "MALLOC_ARENA_MAX": str(max(2, threads)),
        **dict.fromkeys(THREAD_VARIABLES, str(threads)),
    }
    return {name: value for name, value in wanted.items() if name in LISTS or name not in inherited}


def merged(settings: Mapping[str, str], environment: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Return an inherited environment with the settings added to it."""
    result = dict(environment)
    for name, value in settings.items():
        key = name.encode()
        inherited = environment.get(key, b"").strip()
        result[key] = value.encode() + (b" " + inherited if inherited else b"")
    return result


def java_arguments(command: Sequence[str]) -> list[str] | None:
    """Return the options of a ``java`` command; None for any other command.

    Behind ``env`` these are also the options in the variables that Java reads.  With options of ``env``
    itself, which can contain other words, a command counts as another one.
    """
    words = iter(command)
    program = next(words, "")
    options: list[str] = []
    if _name(program) == "env":
        for program in words:
            variable, is_set, value = program.partition("=")
            if not is_set or variable.startswith("-"):
                break
            if variable in JAVA_VARIABLES:
                options += _option_words(value)
    if _name(program) != "java":
        return None
    for word in words:
        if word in JAVA_PROGRAM_FOLLOWS or not word.startswith(("-", "@")):
            break
        options.append(word)
        if word in JAVA_OPTIONS_WITH_ARGUMENT:
            list(islice(words, 1))
    return options


def _option_words(value: str) -> list[str]:
    """Split the value of a variable into options, of which Java removes the quotation marks."""
    return value.replace('"', "").replace("'", "").split()


def _java_options(
    command: Sequence[str], inherited: Sequence[str], memory_mb: int, threads: int
) -> list[str]:
    """Return options with which Java starts whatever the bot's own options are.

    A share of MaxRAM is such an option: a larger -Xms raises the heap's size, while -Xmx would be refused.
    From Java 27 on MaxRAM is gone (JDK-8369346), so -Xmx is set as well where the whole command is known.
    """
    heap = heap_mb(memory_mb)
    share = f"{100 * heap / memory_mb:.2f}"
    options = [
        *JAVA_BASICS,
        f"-XX:ActiveProcessorCount={threads}",
        f"-XX:MaxRAM={memory_mb}m",
        f"-XX:MaxRAMPercentage={share}",
        f"-XX:MinRAMPercentage={share}",  # of two, this is the one for less than 250 MB
    ]
    own = java_arguments(command)
    given = [*(own or []), *inherited]
    is_known = own is not None and not any(word.startswith(OPTION_FILES) for word in given)
    if is_known and not any(word.startswith(OWN_HEAP) for word in given):
        options.append(f"-Xmx{heap}m")
    if is_known and not any(map(_is_of_a_collector, given)):
        options.append("-XX:+UseSerialGC")
    elif is_known and threads > MOST_COLLECTOR_THREADS and not any("GCThreads" in word for word in given):
        # A script may have -XX:ConcGCThreads, which may be no larger than this number.
        options.append(f"-XX:ParallelGCThreads={MOST_COLLECTOR_THREADS}")
    return options


def _name(program: str) -> str:
    return program.rpartition("/")[2]


def _is_of_a_collector(word: str) -> bool:
    return word.startswith(OWN_COLLECTOR) or (word.startswith("-XX:") and "GC" in word)
