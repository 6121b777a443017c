#!/usr/bin/env python3
"""Records the resources of the kernels on each architecture in ptxas.txt: registers per
thread, bytes of stack and spills, and static shared memory per block.

usage: ptxas.py [--check] [PTXAS]

PTXAS is the path of ptxas of CUDA 12.9, by default the environment variable PTXAS.
(The wheel nvidia-cuda-nvcc-cu12, version 12.9.86, contains it.) The same version gives
the same numbers on any machine. --check writes nothing: it compares with ptxas.txt,
prints the lines that differ, and exits with 1 if there are any.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

VERSION = "V12.9.86"  # of ptxas; other versions allocate different registers
ARCHITECTURES = ["sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"]
COLUMNS = ["registers", "stack", "spill stores", "spill loads", "shared memory"]

here = pathlib.Path(__file__).resolve().parent
record = here / "ptxas.txt"


def run(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        sys.exit(f"ptxas.py: {error}")
    if done.returncode != 0:
        sys.exit(f"ptxas.py: {' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def assemble(ptxas, path, architecture):
    """Returns the resources of each kernel of a file, in the order of COLUMNS."""
    output = run(ptxas, "-v", "-arch", architecture, "-o", os.devnull, str(path))
    resources = {}
    for kernel, text in re.findall(r"Compiling entry function '(\w+)' for '\w+'(.*?)(?=Compiling entry|\Z)", output, re.DOTALL):
        def number(pattern):
            found = re.search(pattern, text)
            return int(found[1]) if found else 0
        resources[kernel, architecture] = [number(pattern) for pattern in (
            r"Used (\d+) registers", r"(\d+) bytes stack frame", r"(\d+) bytes spill stores", r"(\d+) bytes spill loads", r"(\d+) bytes smem")]
    return resources


def table(resources):
    rows = [["kernel", "architecture", *COLUMNS]]
    for (kernel, architecture), numbers in sorted(resources.items(), key=lambda item: (item[0][0], ARCHITECTURES.index(item[0][1]))):
        rows.append([kernel, architecture, *map(str, numbers)])
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "".join("  ".join(cell.ljust(width) if i < 2 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths))) + "\n" for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("ptxas", nargs="?", default=os.environ.get("PTXAS"))
    args = parser.parse_args()
    if not args.ptxas:
        parser.error("no PTXAS: give the path of ptxas, or set PTXAS to it")
    if VERSION not in (version := run(args.ptxas, "--version")):
        sys.exit(f"ptxas.py: {args.ptxas} is not {VERSION}, which the record is made with:\n{version}")
    resources = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for part in pool.map(lambda job: assemble(args.ptxas, *job), [(path, a) for path in sorted(here.glob("*.ptx")) for a in ARCHITECTURES]):
            resources.update(part)
    new = table(resources)
    if not args.check:
        record.write_text(new)
        return
    old = record.read_text().splitlines() if record.exists() else []
    lines = new.splitlines()
    for sign, some, others in (("-", old, lines), ("+", lines, old)):
        for line in some:
            if line not in others:
                print(f"ptxas.py: {sign} {line}", file=sys.stderr)
    if old != lines:
        sys.exit("ptxas.py: the resources differ from ptxas.txt; if this is intended, run ptxas.py")


if __name__ == "__main__":
    main()
