#!/usr/bin/env python3
"""Records in ptxas.txt what the kernels take on each architecture: registers of a
thread, bytes that it keeps on the stack and spills, and static shared memory of a block.

usage: ptxas.py [--check] [PTXAS]

PTXAS is the path of ptxas of CUDA 12.9; without it the environment variable PTXAS says.
(The nvidia-cuda-nvcc-cu12 wheel, version 12.9.86, has it.) The same version gives the same
numbers on any machine. --check writes nothing: it compares with what ptxas.txt has, and
exits 1 naming what differs, so that nothing grows unseen.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

VERSION = "V12.9.86"  # of ptxas: another one takes other registers
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
    """Returns what each kernel of a file takes, in the order of COLUMNS."""
    output = run(ptxas, "-v", "-arch", architecture, "-o", os.devnull, str(path))
    takes = {}
    for kernel, text in re.findall(r"Compiling entry function '(\w+)' for '\w+'(.*?)(?=Compiling entry|\Z)", output, re.DOTALL):
        def number(pattern):
            found = re.search(pattern, text)
            return int(found[1]) if found else 0
        takes[kernel, architecture] = [number(pattern) for pattern in (
            r"Used (\d+) registers", r"(\d+) bytes stack frame", r"(\d+) bytes spill stores", r"(\d+) bytes spill loads", r"(\d+) bytes smem")]
    return takes


def table(takes):
    rows = [["kernel", "architecture", *COLUMNS]]
    for (kernel, architecture), numbers in sorted(takes.items(), key=lambda item: (item[0][0], ARCHITECTURES.index(item[0][1]))):
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
    takes = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for part in pool.map(lambda job: assemble(args.ptxas, *job), [(path, a) for path in sorted(here.glob("*.ptx")) for a in ARCHITECTURES]):
            takes.update(part)
    new = table(takes)
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
        sys.exit("ptxas.py: ptxas.txt does not have what the kernels take now; if that is as it should be, run ptxas.py")


if __name__ == "__main__":
    main()
