"""Settings of runtimes, by the bot's command and by inherited variables."""

import pytest

from referee.judge.limits import Limits
from referee.sandbox.runtime_settings import heap_mb, java_arguments, merged, runtime_settings

COMMON = (
    "-XX:+IgnoreUnrecognizedVMOptions -XX:+DisplayVMOutputToStderr -XX:+SuppressFatalErrorMessage "
    "-XX:-UsePerfData -XX:ActiveProcessorCount=2 -XX:MaxRAM=512m -XX:MaxRAMPercentage=68.75 "
    "-XX:MinRAMPercentage=68.75"
)
HEAP, SERIAL = " -Xmx352m", " -XX:+UseSerialGC"


def java(command: str, inherited: dict[str, str] | None = None, cores: int = 2) -> str:
    return runtime_settings(command.split(), Limits(memory_mb=512), cores, inherited)["JAVA_TOOL_OPTIONS"]


@pytest.mark.parametrize(
    ("command", "added"),
    [
        ("/usr/bin/java -jar bot.jar", HEAP + SERIAL),
        ("/opt/jdk/bin/java -cp a.jar Bot -Xmx1g -XX:+UseG1GC", HEAP + SERIAL),  # the program's own arguments
        ("/usr/bin/env A=b java -ea -cp a.jar Bot", HEAP + SERIAL),
        ("/usr/bin/java --module-path -Xmx1g -m a/b", HEAP + SERIAL),
        ("/usr/bin/java -Xmx100m -jar bot.jar", SERIAL),
        ("/usr/bin/java -Xms1g -jar bot.jar", SERIAL),
        ("/usr/bin/java -Xmn600m -jar bot.jar", SERIAL),
        ("/usr/bin/java -XX:NewSize=1g -jar bot.jar", SERIAL),
        ("/usr/bin/java -XX:InitialHeapSize=1g -jar bot.jar", SERIAL),
        ("/usr/bin/java -XX:MaxRAMPercentage=50 -jar bot.jar", SERIAL),
        ("/usr/bin/java -XX:+UseG1GC -jar bot.jar", HEAP),
        ("/usr/bin/java -XX:MaxGCPauseMillis=5 -jar bot.jar", HEAP),
        ("/usr/bin/java -XX:G1HeapRegionSize=1m -jar bot.jar", HEAP),
        ("/usr/bin/java -Xms1g -XX:+UseParallelGC -jar bot.jar", ""),
        ("/usr/bin/java -XX:+AggressiveHeap -jar bot.jar", ""),
        ("/usr/bin/java @options -jar bot.jar", ""),
        ("/usr/bin/java -XX:Flags=options -jar bot.jar", ""),
        ("/usr/bin/java -XX:VMOptionsFile=options -jar bot.jar", ""),
        ("/usr/bin/env JDK_JAVA_OPTIONS=-XX:+UseG1GC java -cp . H", HEAP),
        ("/usr/bin/env JDK_JAVA_OPTIONS=-Xms1g java -cp . H", SERIAL),
        ("/usr/bin/env _JAVA_OPTIONS=-Xms1g A=-XX:+UseG1GC java -cp . H", SERIAL),
        ("/usr/bin/env _JAVA_OPTIONS='-Xms1g' java -XX:+UseG1GC -cp . H", ""),
        ("/usr/bin/env JDK_JAVA_OPTIONS=@options java -cp . H", ""),
        ("/usr/bin/env -S_JAVA_OPTIONS=-Xms1g java -cp . H", ""),
        ("/home/ada/run.sh", ""),
        ("/usr/bin/python3 bot.py", ""),
    ],
)
def test_java_by_command(command: str, added: str) -> None:
    assert java(command) == COMMON + added


def test_java_on_many_cores() -> None:
    common = COMMON.replace("Count=2", "Count=16")
    assert java("/bot/run.sh", cores=64) == common  # it may set -XX:ConcGCThreads
    assert java("/usr/bin/java @options B", cores=64) == common
    own = "/usr/bin/java -XX:+UseG1GC -jar bot.jar"
    assert java(own, cores=64) == common + HEAP + " -XX:ParallelGCThreads=4"
    own = "/usr/bin/java -XX:+UseG1GC -XX:ConcGCThreads=8 -jar bot.jar"  # may be no more than the others
    assert "ParallelGCThreads" not in java(own, cores=64)
    assert "ParallelGCThreads" not in java("/usr/bin/java -jar bot.jar", cores=64)  # there is one


def test_inherited_variables_count() -> None:
    assert java("/usr/bin/java -jar b.jar", {"JAVA_TOOL_OPTIONS": "-XX:+UseG1GC"}) == COMMON + HEAP
    assert java("/usr/bin/java -jar b.jar", {"_JAVA_OPTIONS": "-Xms1g"}) == COMMON + SERIAL
    inherited = {"GOMAXPROCS": "7", "NODE_OPTIONS": "--no-warnings", "OMP_NUM_THREADS": "3"}
    settings = runtime_settings(("/usr/bin/node",), Limits(), 2, inherited)
    assert not {"GOMAXPROCS", "OMP_NUM_THREADS"} & set(settings)
    environment = merged(settings, {name.encode(): value.encode() for name, value in inherited.items()})
    assert environment[b"NODE_OPTIONS"] == b"--max-old-space-size=352 --no-warnings"
    assert environment[b"GOMAXPROCS"] == b"7"
    assert environment[b"GOMEMLIMIT"] == b"461MiB"


def test_other_runtimes() -> None:
    settings = runtime_settings(("/bot/bot",), Limits(memory_mb=1024), 1)
    expected = {
        "NODE_OPTIONS": "--max-old-space-size=800",
        "UV_THREADPOOL_SIZE": "2",
        "GOMEMLIMIT": "922MiB",
        "GOMAXPROCS": "1",
        "DOTNET_GCHeapHardLimit": "0x32000000",
        "COMPlus_gcServer": "0",
        "DOTNET_PROCESSOR_COUNT": "1",
        "DOTNET_EnableWriteXorExecute": "0",
        "MONO_GC_PARAMS": "soft-heap-limit=800m",
        "OMP_NUM_THREADS": "1",
        "RAYON_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "2",
        "JDK_JAVA_OPTIONS": "-Xlog:disable -Xlog:all=warning:stderr",
    }
    assert expected.items() <= settings.items()
    assert runtime_settings(("/bot/bot",), Limits(), 64)["DOTNET_PROCESSOR_COUNT"] == "9"


@pytest.mark.parametrize(
    ("memory_mb", "heap"), [(16, 4), (128, 32), (256, 128), (512, 352), (1024, 800), (2048, 1696)]
)
def test_heap_by_memory(memory_mb: int, heap: int) -> None:
    assert heap_mb(memory_mb) == heap


def test_java_arguments() -> None:
    assert java_arguments(("/bin/sh", "-c", "java")) is None
    assert java_arguments(()) is None
    assert java_arguments(("/usr/bin/env",)) is None
    assert java_arguments(("/usr/bin/java", "-ea", "-cp", "x", "-Xmx1m", "Main", "-Xms1m")) == [
        *("-ea", "-cp", "-Xmx1m")
    ]
