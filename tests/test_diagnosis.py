"""What the end of a standard error tells: real texts, the line that is taken of each, and what it means."""

# ruff: noqa: RUF001 - the quotation marks are the programs' own
import signal

import pytest

from referee.judge.crash_hints import (
    EXPLANATIONS,
    SIGNALS,
    explain,
    explain_line,
    explain_status,
    signal_name,
)
from referee.judge.events import BotExited
from referee.judge.results import Reason
from referee.judge.stderr import StderrBuffer, last_words
from tests.judging import Judged

NOT_STARTED = """
Invalid maximum heap size: -Xmxx
Error: Could not create the Java Virtual Machine.
Error: A fatal exception has occurred. Program will exit.
"""

# What such programs really wrote (Python 3.11, Java 17, Node 20, g++ 12, Rust 1.95, dash and bash), most of
# them in the sandbox; marks under source lines and some frames of an interpreter's own are left out.  Name ->
# the explanation's word, the last words, the text.  Those of Go are written in its format.
ENDS = {
    "python memory": (
        "python-memory",
        "MemoryError (at memory.py, line 2, in think)",
        r"""
Traceback (most recent call last):
  File "/bot/memory.py", line 3, in <module>
    think()
  File "/bot/memory.py", line 2, in think
    return bytearray(10**10)
MemoryError
""",
    ),
    "python threads": (
        "processes",
        "RuntimeError: can't start new thread (at threads.py, line 2, in <module>)",
        r"""
Traceback (most recent call last):
  File "/bot/threads.py", line 2, in <module>
    for n in range(200): threading.Thread(target=time.sleep,args=(5,),daemon=True).start()
  File "/usr/lib/python3.11/threading.py", line 957, in start
    _start_new_thread(self._bootstrap, ())
RuntimeError: can't start new thread
""",
    ),
    "python fork": (
        "processes",
        "BlockingIOError: [Errno 11] Resource temporarily unavailable (at fork.py, line 3, in <module>)",
        r"""
Traceback (most recent call last):
  File "/bot/fork.py", line 3, in <module>
    if os.fork()==0: time.sleep(3); os._exit(0)
BlockingIOError: [Errno 11] Resource temporarily unavailable
""",
    ),
    "python readonly": (
        "read-only",
        "OSError: [Errno 30] Read-only file system: 'log.txt' (at readonly.py, line 1, in <module>)",
        r"""
Traceback (most recent call last):
  File "/bot/readonly.py", line 1, in <module>
    open('log.txt','w')
OSError: [Errno 30] Read-only file system: 'log.txt'
""",
    ),
    "python filelarge": (
        "file-size",
        "OSError: [Errno 27] File too large (at filelarge.py, line 2, in <module>)",
        r"""
Traceback (most recent call last):
  File "/bot/filelarge.py", line 2, in <module>
    for n in range(100): f.write(bytes(2**20))
OSError: [Errno 27] File too large
""",
    ),
    "python nospace": (
        "no-space",
        "OSError: [Errno 28] No space left on device (at nospace.py, line 2, in <module>)",
        r"""
Traceback (most recent call last):
  File "/bot/nospace.py", line 2, in <module>
    for n in range(100): f.write(bytes(2**20))
OSError: [Errno 28] No space left on device
""",
    ),
    "python dns": (
        "network",
        "socket.gaierror: [Errno -3] Temporary failure in name resolution (at dns.py, line 2, in <module>)",
        r"""
Traceback (most recent call last):
  File "/bot/dns.py", line 2, in <module>
    socket.create_connection(('example.org',80),1)
  File "/usr/lib/python3.11/socket.py", line 827, in create_connection
    for res in getaddrinfo(host, port, 0, SOCK_STREAM):
  File "/usr/lib/python3.11/socket.py", line 962, in getaddrinfo
    for res in _socket.getaddrinfo(host, port, family, type, proto, flags):
socket.gaierror: [Errno -3] Temporary failure in name resolution
""",
    ),
    "python netlink": (
        "network",
        "OSError: [Errno 97] Address family not supported by protocol (at netlink.py, line 2, in <module>)",
        r"""
Traceback (most recent call last):
  File "/bot/netlink.py", line 2, in <module>
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)
  File "/usr/lib/python3.11/socket.py", line 232, in __init__
    _socket.socket.__init__(self, family, type, proto, fileno)
OSError: [Errno 97] Address family not supported by protocol
""",
    ),
    "python files": (
        "open-files",
        "OSError: [Errno 24] Too many open files: '/dev/null' (at files.py, line 1, in <listcomp>)",
        r"""
Traceback (most recent call last):
  File "/bot/files.py", line 1, in <module>
    fs=[open('/dev/null') for n in range(500)]
  File "/bot/files.py", line 1, in <listcomp>
    fs=[open('/dev/null') for n in range(500)]
OSError: [Errno 24] Too many open files: '/dev/null'
""",
    ),
    "python module": (
        "python-module",
        "ModuleNotFoundError: No module named 'numpy_of_mine' (at module.py, line 1, in <module>)",
        r"""
Traceback (most recent call last):
  File "/bot/module.py", line 1, in <module>
    import numpy_of_mine
ModuleNotFoundError: No module named 'numpy_of_mine'
""",
    ),
    "python importerr": (
        "python-import",
        "ImportError: cannot import name 'nothing_there' from 'os' (/usr/lib/python3.11/os.py) "
        "(at importerr.py, line 1, in <module>)",
        r"""
Traceback (most recent call last):
  File "/bot/importerr.py", line 1, in <module>
    from os import nothing_there
ImportError: cannot import name 'nothing_there' from 'os' (/usr/lib/python3.11/os.py)
""",
    ),
    "python syntax": (
        "syntax",
        "SyntaxError: invalid syntax (at syntax.py, line 1)",
        r"""
  File "/bot/syntax.py", line 1
    def f(:
SyntaxError: invalid syntax
""",
    ),
    "python indent": (
        "python-tabs",
        "TabError: inconsistent use of tabs and spaces in indentation (at indent.py, line 3)",
        r"""
  File "/bot/indent.py", line 3
    y=2
TabError: inconsistent use of tabs and spaces in indentation
""",
    ),
    "python eof": (
        "end-of-input",
        "EOFError: EOF when reading a line (at eof.py, line 1, in <module>)",
        r"""
Traceback (most recent call last):
  File "/bot/eof.py", line 1, in <module>
    while True: input()
EOFError: EOF when reading a line
""",
    ),
    "python valueerr": (
        "python-number",
        "ValueError: invalid literal for int() with base 10: 'CHANGE' (at valueerr.py, line 2, in <module>)",
        r"""
Traceback (most recent call last):
  File "/bot/valueerr.py", line 2, in <module>
    int(line)
ValueError: invalid literal for int() with base 10: 'CHANGE'
""",
    ),
    "python indexerr": (
        "",
        "IndexError: list index out of range (at indexerr.py, line 2, in <module>)",
        r"""
Traceback (most recent call last):
  File "/bot/indexerr.py", line 2, in <module>
    line.split(';')[5]
IndexError: list index out of range
""",
    ),
    "python recursion": (
        "recursion",
        "RecursionError: maximum recursion depth exceeded (at recursion.py, line 1, in f)",
        r"""
Traceback (most recent call last):
  File "/bot/recursion.py", line 2, in <module>
    f(0)
  File "/bot/recursion.py", line 1, in f
    def f(n): return f(n+1)
  File "/bot/recursion.py", line 1, in f
    def f(n): return f(n+1)
  File "/bot/recursion.py", line 1, in f
    def f(n): return f(n+1)
  [Previous line repeated 996 more times]
RecursionError: maximum recursion depth exceeded
""",
    ),
    "python nofile": (
        "no-file",
        "FileNotFoundError: [Errno 2] No such file or directory: 'opening.book' (at nofile.py, "
        "line 1, in <module>)",
        r"""
Traceback (most recent call last):
  File "/bot/nofile.py", line 1, in <module>
    open('opening.book')
FileNotFoundError: [Errno 2] No such file or directory: 'opening.book'
""",
    ),
    "python py2": (
        "python2",
        "SyntaxError: Missing parentheses in call to 'print'. Did you mean print(...)? (at py2.py, line 1)",
        r"""
  File "/bot/py2.py", line 1
    print 'MOVE;1'
SyntaxError: Missing parentheses in call to 'print'. Did you mean print(...)?
""",
    ),
    "python py2x": (
        "python2",
        "NameError: name 'raw_input' is not defined (at py2x.py, line 2, in <module>)",
        r"""
Traceback (most recent call last):
  File "/bot/py2x.py", line 2, in <module>
    x = raw_input()
NameError: name 'raw_input' is not defined
""",
    ),
    "python killo": (
        "not-permitted",
        "PermissionError: [Errno 1] Operation not permitted (at killo.py, line 2, in <module>)",
        r"""
Traceback (most recent call last):
  File "/bot/killo.py", line 2, in <module>
    os.kill(os.getppid(),9)
PermissionError: [Errno 1] Operation not permitted
""",
    ),
    "python chained": (
        "",
        "RuntimeError: no move (at chained.py, line 4, in <module>)",
        r"""
Traceback (most recent call last):
  File "/bot/chained.py", line 2, in <module>
    int('x')
ValueError: invalid literal for int() with base 10: 'x'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/bot/chained.py", line 4, in <module>
    raise RuntimeError('no move') from e
RuntimeError: no move
""",
    ),
    "python nonutf": (
        "",
        "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0: invalid start "
        "byte (at nonutf.py, line 2, in <module>)",
        r"""
Traceback (most recent call last):
  File "/bot/nonutf.py", line 2, in <module>
    open('/bot/bin').read()
  File "<frozen codecs>", line 322, in decode
UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte
""",
    ),
    "python multi": (
        "",
        "ValueError: a (at multi.py, line 1, in <module>)",
        r"""
Traceback (most recent call last):
  File "/bot/multi.py", line 1, in <module>
    raise ValueError('a\nb')
ValueError: a
b
""",
    ),
    "java heap": (
        "java-heap",
        "java.lang.OutOfMemoryError: Java heap space (at J.java, line 7, in J.main)",
        r"""
Exception in thread "main" java.lang.OutOfMemoryError: Java heap space
	at J.main(J.java:7)
""",
    ),
    "java threads": (
        "threads-java",
        "java.lang.OutOfMemoryError: unable to create native thread: "
        "possibly out of memory or process/resource limits reached (at J.java, line 9, in J.main)",
        r"""
Exception in thread "main" java.lang.OutOfMemoryError: unable to create native thread: possibly out of memory or process/resource limits reached
	at java.base/java.lang.Thread.start0(Native Method)
	at J.main(J.java:9)
""",  # noqa: E501
    ),
    "java number": (
        "other-number",
        'java.lang.NumberFormatException: For input string: "North" (at J.java, line 11, in J.main)',
        r"""
Exception in thread "main" java.lang.NumberFormatException: For input string: "North"
	at java.base/java.lang.NumberFormatException.forInputString(NumberFormatException.java:67)
	at J.main(J.java:11)
""",
    ),
    "java nse": (
        "end-of-input",
        "java.util.NoSuchElementException: No line found (at J.java, line 12, in J.main)",
        r"""
Exception in thread "main" java.util.NoSuchElementException: No line found
	at java.base/java.util.Scanner.nextLine(Scanner.java:1651)
	at J.main(J.java:12)
""",
    ),
    "java null": (
        "null",
        "java.lang.NullPointerException: Cannot invoke "
        '"String.length()" because "<local3>" is null (at J.java, line 13, in J.main)',
        r"""
Exception in thread "main" java.lang.NullPointerException: Cannot invoke "String.length()" because "<local3>" is null
	at J.main(J.java:13)
""",  # noqa: E501
    ),
    "java caused": (
        "other-number",
        'java.lang.NumberFormatException: For input string: "x" (at J.java, line 14, in J.main)',
        r"""
Exception in thread "main" java.lang.RuntimeException: no move
	at J.main(J.java:14)
Caused by: java.lang.NumberFormatException: For input string: "x"
	at java.base/java.lang.NumberFormatException.forInputString(NumberFormatException.java:67)
	... 1 more
""",
    ),
    "java init": (
        "",
        "java.lang.NegativeArraySizeException: -1 (at J.java, line 26, in Bad.<clinit>)",
        r"""
Exception in thread "main" java.lang.ExceptionInInitializerError
	at J.main(J.java:15)
Caused by: java.lang.NegativeArraySizeException: -1
	at Bad.<clinit>(J.java:26)
	... 1 more
""",
    ),
    "java file": (
        "read-only",
        "java.io.FileNotFoundException: log.txt (Read-only file system) (at J.java, line 17, in J.main)",
        r"""
Exception in thread "main" java.io.FileNotFoundException: log.txt (Read-only file system)
	at java.base/java.io.FileOutputStream.open0(Native Method)
	at J.main(J.java:17)
""",
    ),
    "java net": (
        "network",
        "java.net.SocketException: Network is unreachable (at J.java, line 18, in J.main)",
        r"""
Exception in thread "main" java.net.SocketException: Network is unreachable
	at java.base/sun.nio.ch.Net.connect0(Native Method)
	at J.main(J.java:18)
""",
    ),
    "java reserve": (
        "java-memory",
        "OpenJDK 64-Bit Server VM warning: INFO: os::commit_memory(0x00007f85d1400000, 67108864, "
        "0) failed; error='Not enough space' (errno=12)",
        r"""
OpenJDK 64-Bit Server VM warning: INFO: os::commit_memory(0x00007f85d1400000, 67108864, 0) failed; error='Not enough space' (errno=12)
""",  # noqa: E501
    ),
    "java main": (
        "java-main-class",
        "Error: Could not find or load main class Main",
        r"""
Error: Could not find or load main class Main
Caused by: java.lang.ClassNotFoundException: Main
""",
    ),
    "java jar": (
        "java-jar",
        "Error: Unable to access jarfile Main.jar",
        r"""
Error: Unable to access jarfile Main.jar
""",
    ),
    "java version": (
        "java-version",
        "java.lang.UnsupportedClassVersionError: J has been compiled by a more recent version of "
        "the Java Runtime (class file version 65.0), this version of the Java Runtime only "
        "recognizes class file versions up to 61.0",
        r"""
Error: LinkageError occurred while loading main class J
	java.lang.UnsupportedClassVersionError: J has been compiled by a more recent version of the Java Runtime (class file version 65.0), this version of the Java Runtime only recognizes class file versions up to 61.0
""",  # noqa: E501
    ),
    "java noclass": (
        "java-class",
        "java.lang.ClassNotFoundException: Helper (at J.java, line 16, in J.main)",
        r"""
Exception in thread "main" java.lang.NoClassDefFoundError: Helper
	at J.main(J.java:16)
Caused by: java.lang.ClassNotFoundException: Helper
	at java.base/jdk.internal.loader.BuiltinClassLoader.loadClass(BuiltinClassLoader.java:641)
	... 1 more
""",
    ),
    "java fewproc": (
        "",
        "Error: Could not create the Java Virtual Machine.",
        r"""
Error: Could not create the Java Virtual Machine.
Error: A fatal exception has occurred. Program will exit.
""",
    ),
    "rust so": (
        "recursion",
        "fatal runtime error: stack overflow, aborting",
        r"""

thread 'main' (2) has overflowed its stack
fatal runtime error: stack overflow, aborting
""",
    ),
    "rust oom": (
        "rust-memory",
        "memory allocation of 16777216 bytes failed",
        r"""
memory allocation of 16777216 bytes failed
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
""",
    ),
    "rust thread": (
        "processes",
        'panicked: failed to spawn thread: Os { code: 11, kind: WouldBlock, message: "Resource '
        'temporarily unavailable" }',
        r"""

thread 'main' (2) panicked at /rustc/59807616/library/std/src/thread/functions.rs:131:29:
failed to spawn thread: Os { code: 11, kind: WouldBlock, message: "Resource temporarily unavailable" }
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
""",
    ),
    "rust file": (
        "read-only",
        "panicked: called `Result::unwrap()` on an `Err` value: Os { code: 30, kind: "
        'ReadOnlyFilesystem, message: "Read-only file system" } (at R.rs, line 10)',
        r"""

thread 'main' (2) panicked at R.rs:10:45:
called `Result::unwrap()` on an `Err` value: Os { code: 30, kind: ReadOnlyFilesystem, message: "Read-only file system" }
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
""",  # noqa: E501
    ),
    "node heap": (
        "cplusplus-memory",
        "std::bad_alloc",
        r"""
terminate called after throwing an instance of 'std::bad_alloc'
  what():  std::bad_alloc
""",
    ),
    "node throw": (
        "",
        "Error: no legal move (at N.js, line 3)",
        r"""
/bot/N.js:3
if(w=='throw') throw new Error('no legal move');

Error: no legal move
    at Object.<anonymous> (/bot/N.js:3:22)

Node.js v20.20.2
""",
    ),
    "node type": (
        "",
        "TypeError: Cannot read properties of undefined (reading 'x') (at N.js, line 4)",
        r"""
/bot/N.js:4
if(w=='type') undefined.x;

TypeError: Cannot read properties of undefined (reading 'x')
    at Object.<anonymous> (/bot/N.js:4:25)

Node.js v20.20.2
""",
    ),
    "node module": (
        "node-module",
        "Error: Cannot find module 'nothere' (at N.js, line 5)",
        r"""
node:internal/modules/cjs/loader:1210
  throw err;

Error: Cannot find module 'nothere'
Require stack:
- /bot/N.js
    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)
    at Object.<anonymous> (/bot/N.js:5:17)
  code: 'MODULE_NOT_FOUND',
  requireStack: [ '/bot/N.js' ]
}

Node.js v20.20.2
""",
    ),
    "node file": (
        "read-only",
        "Error: EROFS: read-only file system, open 'log.txt' (at N.js, line 6)",
        r"""
node:fs:2380
    return binding.writeFileUtf8(

Error: EROFS: read-only file system, open 'log.txt'
    at Object.writeFileSync (node:fs:2380:20)
    at Object.<anonymous> (/bot/N.js:6:29)
  errno: -30,
  code: 'EROFS',
  syscall: 'open',
  path: 'log.txt'
}

Node.js v20.20.2
""",
    ),
    "node dns": (
        "network",
        "Error: getaddrinfo EAI_AGAIN example.org",
        r"""
node:events:502
      throw er; // Unhandled 'error' event

Error: getaddrinfo EAI_AGAIN example.org
    at GetAddrInfoReqWrap.onlookupall [as oncomplete] (node:dns:122:26)
Emitted 'error' event on ClientRequest instance at:
    at emitErrorEvent (node:_http_client:101:11)
  errno: -3001,
  code: 'EAI_AGAIN',
  syscall: 'getaddrinfo',
  hostname: 'example.org'
}

Node.js v20.20.2
""",
    ),
    "node syntax": (
        "syntax",
        "SyntaxError: Unexpected token ';'",
        r"""
/bot/S.js:1
let x = ;

SyntaxError: Unexpected token ';'
    at wrapSafe (node:internal/modules/cjs/loader:1464:18)

Node.js v20.20.2
""",
    ),
    "C alloc": (
        "cplusplus-memory",
        "std::bad_alloc",
        r"""
terminate called after throwing an instance of 'std::bad_alloc'
  what():  std::bad_alloc
""",
    ),
    "C threads": (
        "processes",
        "std::system_error: Resource temporarily unavailable",
        r"""
terminate called after throwing an instance of 'std::system_error'
  what():  Resource temporarily unavailable
""",
    ),
    "C assert": (
        "assertion",
        "C: C.cpp:17: int main(int, char**): Assertion `1==2' failed.",
        r"""
C: C.cpp:17: int main(int, char**): Assertion `1==2' failed.
""",
    ),
    "C stoi": (
        "other-number",
        "std::invalid_argument: stoi",
        r"""
terminate called after throwing an instance of 'std::invalid_argument'
  what():  stoi
""",
    ),
    "C free": (
        "double-free",
        "free(): double free detected in tcache 2",
        r"""
free(): double free detected in tcache 2
""",
    ),
    "C smash": (
        "double-free",
        "*** stack smashing detected ***: terminated",
        r"""
*** stack smashing detected ***: terminated
""",
    ),
    "C throwint": (
        "",
        "terminate called after throwing an instance of 'int'",
        r"""
terminate called after throwing an instance of 'int'
""",
    ),
    "C joinable": (
        "thread-left",
        "terminate called without an active exception",
        r"""
terminate called without an active exception
""",
    ),
    "rust unwrap": (
        "other-number",
        "panicked: called `Result::unwrap()` on an `Err` value: ParseIntError { kind: "
        "InvalidDigit } (at R.rs, line 4)",
        r"""

thread 'main' (2) panicked at R.rs:4:40:
called `Result::unwrap()` on an `Err` value: ParseIntError { kind: InvalidDigit }
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
""",
    ),
    "rust index": (
        "",
        "panicked: index out of bounds: the len is 1 but the index is 5 (at R.rs, line 5)",
        r"""

thread 'main' (2) panicked at R.rs:5:58:
index out of bounds: the len is 1 but the index is 5
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
""",
    ),
    "shell notfound": (
        "no-command",
        "/bot/notfound.sh: 1: python7: not found",
        r"""
/bot/notfound.sh: 1: python7: not found
""",
    ),
    "shell envnf": (
        "env",
        "/usr/bin/env: ‘python7’: No such file or directory",
        r"""
/usr/bin/env: ‘python7’: No such file or directory
""",
    ),
    "shell nofile": (
        "no-command",
        "/bot/nofile.sh: 1: ./mybot: not found",
        r"""
/bot/nofile.sh: 1: ./mybot: not found
""",
    ),
    "shell bperm": (
        "permission",
        "/bot/bperm.sh: line 1: ./N.js: Permission denied",
        r"""
/bot/bperm.sh: line 1: ./N.js: Permission denied
""",
    ),
    "shell bexecfmt": (
        "format",
        "/bot/bexecfmt.sh: line 1: ./arm: cannot execute binary file: Exec format error",
        r"""
/bot/bexecfmt.sh: line 1: ./arm: cannot execute binary file: Exec format error
""",
    ),
    "shell crlfshebang": (
        "interpreter-crlf",
        "/usr/bin/env: ‘python3\\r’: No such file or directory",
        r"""
/usr/bin/env: ‘python3\r’: No such file or directory
/usr/bin/env: use -[v]S to pass options in shebang lines
""",
    ),
    "shell badint": (
        "no-command",
        "/bot/badint.sh: 1: ./py7: not found",
        r"""
/bot/badint.sh: 1: ./py7: not found
""",
    ),
    "shell bbadint": (
        "no-command",
        "/bot/bbadint.sh: line 1: ./py7: cannot execute: required file not found",
        r"""
/bot/bbadint.sh: line 1: ./py7: cannot execute: required file not found
""",
    ),
    "shell crlfsh2": (
        "crlf",
        "python3: can't open file '/bot/bot.py\\r': [Errno 2] No such file or directory",
        r"""
/bot/crlfsh2.sh: line 1: cd: $'/tmp\r': No such file or directory
python3: can't open file '/bot/bot.py\r': [Errno 2] No such file or directory
""",
    ),
    "shell shsyntax": (
        "shell-syntax",
        '/bot/shsyntax.sh: 4: Syntax error: end of file unexpected (expecting "then")',
        r"""
/bot/shsyntax.sh: 4: Syntax error: end of file unexpected (expecting "then")
""",
    ),
    "shell forks": (
        "processes",
        "/bot/forks.sh: 0: Cannot fork",
        r"""
/bot/forks.sh: 0: Cannot fork
""",
    ),
    "shell rofs": (
        "read-only",
        "/bot/rofs.sh: 1: cannot create log.txt: Read-only file system",
        r"""
/bot/rofs.sh: 1: cannot create log.txt: Read-only file system
""",
    ),
    "shell bsegv": (
        "segfault",
        "/bot/bsegv.sh: line 1:     3 Segmentation fault      ./C segv",
        r"""
/bot/bsegv.sh: line 1:     3 Segmentation fault      ./C segv
""",
    ),
    "shell bkill": (
        "",
        "/bot/bkill.sh: line 1:     3 Killed                  bash -c 'kill -9 $$'",
        r"""
/bot/bkill.sh: line 1:     3 Killed                  bash -c 'kill -9 $$'
""",
    ),
    "python nofile file": (
        "can't-open",
        "/usr/bin/python3: can't open file '/bot/nowhere.py': [Errno 2] No such file or directory",
        r"""
/usr/bin/python3: can't open file '/bot/nowhere.py': [Errno 2] No such file or directory
""",
    ),
    "missing so": (
        "library",
        "/bot/M: error while loading shared libraries: libfoo.so: cannot open shared object "
        "file: No such file or directory",
        r"""
/bot/M: error while loading shared libraries: libfoo.so: cannot open shared object file: No such file or directory
""",  # noqa: E501
    ),
    "glibc": (
        "glibc",
        "/bot/G9: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.99' not found (required by /bot/G9)",
        r"""
/bot/G9: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.99' not found (required by /bot/G9)
""",
    ),
    "brokenpipe": (
        "broken-pipe",
        "BrokenPipeError: [Errno 32] Broken pipe (at <string>, line 2, in <module>)",
        r"""
Traceback (most recent call last):
  File "<string>", line 2, in <module>
BrokenPipeError: [Errno 32] Broken pipe
""",
    ),
    "node heap small": (
        "node-memory",
        "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
        r"""

<--- Last few GCs --->



<--- JS stacktrace --->

FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory
----- Native stack trace -----

 1: 0xb78db3 node::OOMErrorHandler(char const*, v8::OOMDetails const&) [/usr/bin/node]
 4: 0x10fb205  [/usr/bin/node]
11: 0x1297c5f  [/usr/bin/node]
12: 0x12a52a3  [/usr/bin/node]
13: 0x12c0c2b  [/usr/bin/node]
16: 0x195e476  [/usr/bin/node]
""",
    ),
    "shell python -c alloc": (
        "memory",
        "OSError: [Errno 12] Cannot allocate memory (at <string>, line 2, in <module>)",
        r"""
Traceback (most recent call last):
  File "<string>", line 2, in <module>
OSError: [Errno 12] Cannot allocate memory
""",
    ),
    "py utf": (
        "python-not-source",
        "SyntaxError: invalid non-printable character U+007F (at M, line 1)",
        r"""
  File "/bot/M", line 1
    ELFzRK
SyntaxError: invalid non-printable character U+007F
""",
    ),
    "go index": (
        "",
        "panic: runtime error: index out of range [5] with length 3 (at main.go, line 9)",
        """
panic: runtime error: index out of range [5] with length 3

goroutine 1 [running]:
main.move(...)
\t/bot/main.go:9
main.main()
\t/bot/main.go:5 +0x1d
exit status 2
""",
    ),
    "go number": (
        "other-number",
        'panic: strconv.Atoi: parsing "North": invalid syntax (at main.go, line 13)',
        """
panic: strconv.Atoi: parsing "North": invalid syntax

goroutine 1 [running]:
main.main()
\t/bot/main.go:13 +0x8c
""",
    ),
    "go memory": (
        "go-memory",
        "fatal error: runtime: out of memory (at main.go, line 7)",
        """
fatal error: runtime: out of memory

goroutine 1 [running]:
runtime.throw({0x49a2b5, 0x16})
\t/usr/local/go/src/runtime/panic.go:1023 +0x5c fp=0x7ffd
main.main()
\t/bot/main.go:7 +0x2a
""",
    ),
    "node limit": (
        "node-memory",
        "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
        r"""

<--- Last few GCs --->

[19454:0x10dabca0]      909 ms: Mark-Compact 47.8 (81.2) -> 47.8 (81.2) MB, 10.52 / 0.00 ms

<--- JS stacktrace --->

FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory
----- Native stack trace -----

 1: 0xb78db3 node::OOMErrorHandler(char const*, v8::OOMDetails const&) [node]
 2: 0xee8300 v8::Utils::ReportOOMFailure(v8::internal::Isolate*, char const*) [node]
16: 0x195e476  [node]
""",
    ),
    "node buffer": (
        "node-memory",
        "RangeError: Array buffer allocation failed (at hogbuf.js, line 1)",
        r"""
node:internal/buffer:1063
  return new FastBuffer(createUnsafeArrayBuffer(size));

RangeError: Array buffer allocation failed
    at createUnsafeBuffer (node:internal/buffer:1063:25)
    at Function.alloc (node:buffer:394:17)
    at Socket.<anonymous> (/bot/hogbuf.js:1:71)

Node.js v20.20.2
""",
    ),
    "java insufficient": (
        "java-memory",
        "There is insufficient memory for the Java Runtime Environment to continue.",
        r"""
OpenJDK 64-Bit Server VM warning: INFO: os::commit_memory(0x1, 6193152, 0) failed; error='Not enough space' (errno=12)
#
# There is insufficient memory for the Java Runtime Environment to continue.
# Native memory allocation (mmap) failed to map 6193152 bytes. Error detail: committing reserved memory.
# An error report file with more information is saved as:
# /tmp/hs_err_pid19275.log
""",  # noqa: E501
    ),
    "go memory at once": (
        "go-memory",
        "fatal error: runtime: out of memory",
        r"""
fatal error: runtime: out of memory

runtime stack:
runtime.throw({0x47a212?, 0x2030?})
	/usr/lib/go-1.19/src/runtime/panic.go:1047 +0x5d fp=0xc000047e00 sp=0xc000047dd0 pc=0x42f9dd
runtime.sysMapOS(0xc004400000, 0x1000000?)
	/usr/lib/go-1.19/src/runtime/mem_linux.go:187 +0x11b fp=0xc000047e48 sp=0xc000047e00 pc=0x41335b
""",
    ),
    "go metadata": (
        "go-memory",
        "fatal error: out of memory allocating heap arena metadata",
        r"""
fatal error: out of memory allocating heap arena metadata

runtime stack:
runtime.throw({0x47d9b7?, 0x0?})
	/usr/lib/go-1.19/src/runtime/panic.go:1047 +0x5d fp=0xc000047de0 sp=0xc000047db0 pc=0x4301fd

goroutine 1 [running]:
runtime.systemstack_switch()
	/usr/lib/go-1.19/src/runtime/asm_amd64.s:459 fp=0xc000044598 sp=0xc000044590 pc=0x457b20
created by runtime.gcBgMarkStartWorkers
	/usr/lib/go-1.19/src/runtime/mgc.go:1159 +0x25
""",
    ),
    "go address space": (
        "go-memory",
        "fatal error: failed to reserve page summary memory",
        r"""
fatal error: failed to reserve page summary memory

runtime stack:
runtime.throw({0x47cabe?, 0x7ffc2ca8cb70?})
	/usr/lib/go-1.19/src/runtime/panic.go:1047 +0x5d fp=0x7ffc2ca8cb20 sp=0x7ffc2ca8caf0 pc=0x42f9dd
""",
    ),
    "rust memory with its trace": (
        "rust-memory",
        "memory allocation of 16777216 bytes failed",
        r"""
memory allocation of 16777216 bytes failed
stack backtrace:
memory allocation of 65536 bytes failed
skipping backtrace printing to avoid potential recursion
""",
    ),
    "C alloc in a shell": (
        "cplusplus-memory",
        "std::bad_alloc",
        r"""
terminate called after throwing an instance of 'std::bad_alloc'
  what():  std::bad_alloc
Aborted
""",
    ),
    "lua memory": ("lua-memory", "lua5.4: not enough memory", "\nlua5.4: not enough memory\n"),
    "mono memory": (
        "dotnet-memory",
        "System.OutOfMemoryException: Insufficient memory to continue the execution of the program.",
        r"""
Unhandled Exception:
System.OutOfMemoryException: Insufficient memory to continue the execution of the program.
  at (wrapper alloc) System.Object.AllocVector(intptr,intptr)
  at H.Main () [0x0000c] in <5cb76f181f124a30a0a282a6048d310c>:0
[ERROR] FATAL UNHANDLED EXCEPTION: System.OutOfMemoryException: Insufficient memory to continue the execution of the program.
  at (wrapper alloc) System.Object.AllocVector(intptr,intptr)
  at H.Main () [0x0000c] in <5cb76f181f124a30a0a282a6048d310c>:0
""",  # noqa: E501
    ),
    "mono collector": (
        "dotnet-memory",
        "Error: Garbage collector could not allocate 16384 bytes of memory for major heap section.",
        r"""
Error: Garbage collector could not allocate 16384 bytes of memory for major heap section.
""",
    ),
    "system memory": (
        "memory",
        "sort: cannot open file: Cannot allocate memory",
        "sort: cannot open file: Cannot allocate memory\n",
    ),
    "java not started": ("", "Invalid maximum heap size: -Xmxx", NOT_STARTED),
}
NOT_LOOKED_FOR_HERE = {"enoent"}
"""Explanations that no row has, each with a test of its own below."""


@pytest.mark.parametrize("name", ENDS)
def test_the_end_of_a_real_program(name: str) -> None:
    word, words, text = ENDS[name]
    assert last_words(text) == words
    sentence = explain(words)
    if not word:
        assert sentence == ""
        return
    template = EXPLANATIONS[word][1]
    start = template.partition("{")[0]
    assert sentence.startswith(start)
    assert "{" not in sentence
    assert not sentence.endswith(".")
    assert len(sentence) <= 260


def test_every_explanation_has_a_real_text() -> None:
    assert {word for word, _, _ in ENDS.values() if word} | NOT_LOOKED_FOR_HERE == set(EXPLANATIONS)


def test_a_missing_file_without_its_name() -> None:
    words = "Caused by: java.io.IOException: error=2, No such file or directory"
    assert explain(words) == EXPLANATIONS["enoent"][1]


def test_what_was_named_is_named_in_the_sentence() -> None:
    assert "numpy" in explain("ModuleNotFoundError: No module named 'numpy'")
    assert "GLIBC_2.99" in explain("x: version `GLIBC_2.99' not found (required by x)")
    assert "{0}" in explain("ModuleNotFoundError: No module named '{0}'")  # a text of the bot is no template


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ""),
        ("\n \n", ""),
        ("thinking\n", "thinking"),
        ("depth 3\ndepth 4\n\n", "depth 4"),
        ("KeyError: 'a'\n", "KeyError: 'a'"),
        ("note: this is all\n", "note: this is all"),
        ("Node.js v20.20.2\n", "Node.js v20.20.2"),
        ("    at home (x.js:1:2)\n", "at home (x.js:1:2)"),
        ("goroutine \n", "goroutine"),
        ("  what():  nothing\n", "what():  nothing"),
        ("Traceback (most recent call last):\n", "Traceback (most recent call last):"),
        # A traceback that the bot survived, and went on to talk
        (
            'Traceback (most recent call last):\n  File "b.py", line 1\nKeyError: 1\na\nb\nc\nd\ne\n',
            "e",
        ),
    ],
)
def test_other_texts_give_their_last_line(text: str, words: str) -> None:
    assert last_words(text) == words


def test_a_deep_java_stack_keeps_its_first_line() -> None:
    frames = 'Exception in thread "main" java.lang.StackOverflowError\n' + 1024 * "\tat J.f(J.java:4)\n"
    assert last_words(frames) == "java.lang.StackOverflowError (at J.java, line 4, in J.f)"
    keeper = StderrBuffer(16 * 1024)
    keeper.feed(frames.encode())
    assert "bytes not kept" in keeper.text()
    assert keeper.last_words() == last_words(frames)


@pytest.mark.parametrize("name", SIGNALS)
def test_signals(name: str) -> None:
    number = signal.Signals[name].value
    assert signal_name(number) == name
    assert explain_status(-number) == explain("", -number) == SIGNALS[name]
    assert explain_status(128 + number) == f"a shell's way to say that {name} killed it: {SIGNALS[name]}"


def test_other_statuses() -> None:
    assert explain_status(127) == "a shell's way to say: command not found"
    assert explain_status(126) == "a shell's way to say: found, but not executable"
    assert [explain_status(status) for status in (0, 1, 3, 128, 255, -99)] == [""] * 6
    assert signal_name(99) == "signal 99"


def test_words_come_before_the_status() -> None:
    assert explain("std::bad_alloc", -6) == EXPLANATIONS["cplusplus-memory"][1]


def test_lines_of_a_java_that_could_not_start() -> None:
    assert "heap" in explain_line("Error occurred during initialization of VM")
    assert "give up" in explain_line("#")
    assert explain_line("# comment") == explain_line("") == ""
    judged = Judged()
    judged.line(0, "Error occurred during initialization of VM")
    assert judged.match.result is None  # the cause may follow
    judged.line(0, "Initial heap size set to a larger value than the maximum heap size")
    judged.tell(BotExited(0, judged.at, 1, "", ""))
    assert judged.result.reason is Reason.PROTOCOL
    assert "too large" in judged.result.detail


def test_the_note_explains_and_the_public_sentence_does_not_tell() -> None:
    judged = Judged()
    words = "ModuleNotFoundError: No module named 'secret' (at bot.py, line 3, in <module>)"
    judged.tell(BotExited(0, 0.1, 1, "", words))
    assert "secret" not in judged.result.detail
    assert judged.result.note.startswith('its last words on standard error: "ModuleNotFoundError')
    assert "(at bot.py, line 3, in <module>). That is: the module secret is not there" in judged.result.note


def test_a_long_line_is_cut_and_its_place_is_not() -> None:
    judged = Judged()
    judged.tell(BotExited(0, 0.1, 1, "", f"ValueError: {'x' * 200} (at bot.py, line 3)"))
    assert judged.result.note.endswith("xxx...' (at bot.py, line 3)")
    judged = Judged()
    judged.tell(BotExited(0, 0.1, 1, "", "ValueError: \x1b[2J (at \x1b)"))
    assert "\x1b" not in judged.result.note


def test_a_signal_is_explained_to_everybody() -> None:
    judged = Judged()
    judged.tell(BotExited(0, 0.1, -11, "", ""))
    assert "killed by SIGSEGV on its turn (a bad pointer, or a recursion too deep" in judged.result.detail
    assert judged.result.note == ""


NOTICES = (
    "NOTE: Picked up JDK_JAVA_OPTIONS: -Xlog:disable -Xlog:all=warning:stderr\n"
    "Picked up JAVA_TOOL_OPTIONS: -XX:+IgnoreUnrecognizedVMOptions -XX:+DisplayVMOutputToStderr -Xmx352m\n"
)


def test_the_notice_of_our_own_settings_is_marked_and_is_nobodys_last_words() -> None:
    keeper = StderrBuffer()
    keeper.feed(NOTICES.encode())
    assert (keeper.last_words(), keeper.last_line()) == ("", "")
    assert keeper.text().count("[set by Kalarena: the limits of the bot]\n") == 2
    assert last_words("no book\n" + NOTICES) == "no book"
    other = "Picked up JAVA_TOOL_OPTIONS: -Dx=y"
    assert last_words(other) == other
