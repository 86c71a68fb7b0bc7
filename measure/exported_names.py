"""Names in exported C that mean nothing else to C, C++, CMake, or the headers that a program includes."""

from __future__ import annotations

from ansor.codegen.exported import CHECKS
from ansor.codegen.pool_library import SOURCE as POOL
from ansor.errors import ArgumentError
from ansor.ir.dag import c_identifier, tidy_identifier

FILES = {CHECKS.stem, "selftest", POOL.stem}
"""Names of other files in the folder."""

TARGETS = {"all", "clean", "depend", "edit_cache", "help", "install", "list_install_components", "m", "package", "package_source", "rebuild_cache", "test"}
"""Targets that CMake has itself, and the library of math.h."""

HEADERS = {
    "alloca", "argp", "assert", "byteswap", "complex", "ctype", "dirent", "dlfcn", "endian", "errno", "error", "execinfo", "fcntl", "features", "fenv",
    "fnmatch", "fts", "ftw", "getopt", "glob", "grp", "iconv", "inttypes", "iso646", "langinfo", "libgen", "limits", "link", "locale", "malloc", "math",
    "memory", "monetary", "mqueue", "netdb", "obstack", "poll", "pthread", "pwd", "regex", "resolv", "sched", "search", "semaphore", "setjmp", "signal",
    "spawn", "stdalign", "stdarg", "stdatomic", "stdbool", "stddef", "stdint", "stdio", "stdlib", "stdnoreturn", "string", "strings", "syslog", "tar",
    "termios", "tgmath", "threads", "time", "uchar", "ulimit", "unistd", "utime", "values", "wchar", "wctype", "wordexp",
}  # fmt: skip
"""Headers of C and POSIX: programs look for headers in the folder first, and would find the kernel's."""

WORDS = {
    "bool", "catch", "char16_t", "char32_t", "const_cast", "constexpr", "decltype", "delete", "dynamic_cast", "explicit", "export", "false", "friend",
    "mutable", "namespace", "new", "noexcept", "nullptr", "operator", "private", "protected", "public", "reinterpret_cast", "static_assert", "static_cast",
    "template", "this", "thread_local", "throw", "true", "typeid", "typename", "using", "virtual", "wchar_t", "alignas", "alignof", "concept", "requires",
    "and_eq", "bitand", "bitor", "compl", "not_eq", "or_eq", "xor", "xor_eq", "char8_t", "consteval", "constinit", "co_await", "co_return", "co_yield",
}  # fmt: skip
"""Words of C++ that can be names in C."""

MACROS = {"BUFSIZ", "EOF", "I", "NULL", "complex", "errno", "imaginary", "stderr", "stdin", "stdout"}
"""Macros of C's headers, which a program may include before the kernel's."""

OTHERS = {"workspace", "parallel_for", "pool"}
"""The other parameters of the function."""


def kernel_name(asked: str, entry: str) -> str:
    """The name of an exported kernel: the one asked for, or by default that of its entry point. Raises ArgumentError for a name that something else has."""
    taken = FILES | TARGETS | HEADERS
    usual = tidy_identifier(entry)
    usual = f"{usual}_kernel" if usual in taken else usual
    if asked and (c_identifier(asked) != asked or asked in taken):
        why = "is taken by a header, a CMake target or another file" if asked in taken else "cannot be the kernel's name in C"
        raise ArgumentError(f"asked to export a kernel as {asked!r}, but the name {why}; give one such as {usual!r}")
    return asked or usual


def parameter_name(name: str) -> str:
    """The name of an array as a parameter in a header."""
    return f"{name}_" if name in WORDS | MACROS | OTHERS else name
