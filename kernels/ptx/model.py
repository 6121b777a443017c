#!/usr/bin/env python3
"""Computes, without a GPU, how long an epoch of training takes on some, and what bounds
each kernel: 400,000 words × 300 → 3000, in 128 dictionary steps.

usage: model.py [--check DOCUMENT] [PTXAS [NVDISASM]]

PTXAS and NVDISASM are paths of ptxas of CUDA 12.9 and nvdisasm; without them the
environment variables of these names say. A launch is counted as five things that go on
beside each other, and the longest is its time, with START more:

    issue    the instructions of a step of the product's loop, from the machine code, for
             all warps of a block, a quarter of them to each scheduler of an SM; and those
             of the rest of the kernel, once
    tensor   mma at the rate that mma.sync reaches
    shared   128 bytes a clock of what goes into shared memory and out of it
    L2       all that the blocks read and write
    DRAM     each matrix that L2 does not hold from one launch to the next, once

--check prints no tables: it compares the epochs' times with the table "an epoch, ms" of
docs/gpu.md, and exits 1 naming what differs.

It is a floor, as nothing waits: blocks go to SMs in equal shares, but whole ones, banks
don't conflict, and no instruction waits for another. Rows of the row machine are counted
by what an instruction of it takes on a row, ROW_ISSUE.
"""

import argparse
import collections
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

WORDS, ATOMS, DIM, STEPS = 400_000, 3000, 300, 128
START = 1.5e-6  # seconds from one launch's end to the next one's work
ROW_ISSUE = 260  # instructions of a warp for one of the row machine, on a row of 300
NUMBER_ISSUE = 40  # and for one on numbers
SUM_LATENCY = 2.5e-6  # seconds of one SM, which reads a number of each row and adds up across its threads
CODE_BATCH = 16384  # words of a code step, as plan.go has it

here = pathlib.Path(__file__).resolve().parent

# clock in Hz, DRAM and L2 in bytes a second, mma in multiplications of 16-bit factors by an
# SM in a clock. Of the data sheets' tensor rates mma.sync reaches all on the A100 and about
# 62 % on Hopper; L2 rates are those that others have measured.
GPU = collections.namedtuple("GPU", "name architecture sms clock dram l2 l2_size mma")
GPUS = [
    GPU("A100", "sm_80", 108, 1.41e9, 1.8e12, 4.5e12, 40e6, 1024),
    GPU("H100", "sm_90", 132, 1.755e9, 3.0e12, 5.5e12, 50e6, 1270),
    GPU("H200", "sm_90", 132, 1.755e9, 4.3e12, 5.5e12, 50e6, 1270),
]
MMA = {"HMMA.16816": (16 * 8 * 16, 1), "HMMA.1688": (16 * 8 * 8, 2)}  # multiplications; their cost in those of 16 bits


def disassemble(ptxas, nvdisasm, path, architecture):
    """Returns each kernel's instructions, and the first and last of each of its loops."""
    with tempfile.NamedTemporaryFile() as cubin:
        subprocess.run([ptxas, "-arch", architecture, "-o", cubin.name, path], check=True)
        text = subprocess.run([nvdisasm, "-c", cubin.name], check=True, capture_output=True, text=True).stdout
    kernels = {}
    for name, body in re.findall(r"^\.text\.(\w+):\n(.*?)(?=^//-----|\Z)", text, re.MULTILINE | re.DOTALL):
        instructions, labels, loops = [], {}, []
        for line in body.splitlines():
            if label := re.match(r"(\.L_\w+):", line):
                labels[label[1]] = len(instructions)
            elif found := re.match(r"\s+/\*[0-9a-f]+\*/\s+(?:\{ )?(?:@!?U?P\w+ )?\s*([A-Z0-9_.]+)(.*?);", line):
                to = re.search(r"`\((\.L_\w+)\)", found[2])
                if found[1] == "BRA" and to and to[1] in labels:
                    loops.append((labels[to[1]], len(instructions)))
                instructions.append(found[1])
        kernels[name] = instructions, loops
    return kernels


class Code:
    """What the machine code of a product's kernel takes: of a step of its loop, and around it."""

    def __init__(self, instructions, loops):
        # The loop over steps is the one around both the copies and the products.
        def has(loop, name):
            return any(i.startswith(name) for i in instructions[loop[0] : loop[1] + 1])

        first, last = min((l for l in loops if has(l, "LDGSTS") and has(l, "HMMA")), key=lambda l: l[1] - l[0])
        step = instructions[first : last + 1]
        self.step, self.rest = len(step), len(instructions) - len(step)
        self.mma = sum(m * cost for i in step for name, (m, cost) in MMA.items() if i.startswith(name))
        self.shared = sum(self.shared_bytes(i) for i in step)

    @staticmethod
    def shared_bytes(instruction):
        """Of a warp, as shared memory moves them: 128 in each clock."""
        if instruction.startswith("LDGSTS"):
            return 512
        if instruction.startswith("LDSM"):
            return 128 * int(instruction[-1])
        if instruction.startswith("LDS"):
            return {"64": 256, "128": 512}.get(instruction.rpartition(".")[2], 128)
        return 0


Launch = collections.namedtuple("Launch", "kernel clocks l2 dram")  # clocks of an SM, by what takes them; bytes


class Epoch:
    """The launches of an epoch on a GPU, in a precision, with sums of a state."""

    def __init__(self, gpu, precision, state, codes):
        self.gpu, self.precision, self.state, self.codes = gpu, precision, state, codes
        self.name = precision if state == "float32" else f"{precision}, --state {state}"
        self.factor = 2 if precision == "fp16" else 4  # bytes
        self.launches = collections.Counter()
        words = math.ceil(WORDS / STEPS)
        vectors, atoms = words * DIM * 4, ATOMS * DIM * 4
        factors = words * ATOMS * self.factor
        kept = 0 if factors + 4 * vectors + 6 * atoms < 0.8 * gpu.l2_size else factors  # of them, that L2 does not keep
        self.part = "dictionary"
        parts = 2 if precision == "fp16" else 1  # which the row machine adds up
        halves = 1 if precision == "fp16" else 0  # an instruction that copies what is made for the next product
        self.add(STEPS, self.product("decode", words, DIM, ATOMS, vectors, factors, parts))
        self.add(STEPS, self.rows(words, 1 + parts + halves, 1, 2 + parts + halves / 2, vectors))  # R, Σ R²
        self.add(STEPS, self.totals(words, 1))
        if halves:
            self.add(STEPS, self.product("update", ATOMS, DIM, words, 4.5 * atoms, kept))  # D, H, v1
        else:
            self.add(STEPS, self.product("accumulate", ATOMS, DIM, words, 2 * atoms, kept))
            self.add(STEPS, self.rows(ATOMS, 15, 0, 6, 0))
        self.add(STEPS, self.product("decode", words, DIM, ATOMS, vectors, kept, parts))
        self.add(STEPS, self.rows(words, 1 + parts, 2, 1 + parts, 0))  # Σ R∘p, Σ p²
        self.add(STEPS, self.totals(words, 2))
        self.add(STEPS, self.rows(ATOMS, 2 + halves, 0, 3 + halves / 2, 0))  # D
        self.part = "codes"
        words = CODE_BATCH
        vectors, codes, factors = words * DIM * 4, words * ATOMS * 4, words * ATOMS * self.factor
        batches = WORDS / words
        self.add(batches, self.product("decode", words, DIM, ATOMS, vectors, factors))
        self.add(batches, self.rows(words, 1 + halves, 0, 3 + halves / 2, 3 * vectors))  # R
        sums = {"float32": 4, "float16": 2}[state] * codes  # S and Q, read and written
        self.add(batches, self.product("correlate", words, ATOMS, DIM, sums + factors, sums + factors + vectors))
        self.add(batches, self.product("decode", words, DIM, ATOMS, vectors, factors))
        self.add(batches, self.rows(words, 5, 3, 2, 2 * vectors))  # β, the loss
        self.add(batches, self.finish(words, 1.5 * factors))  # if half of the rows are scaled
        self.add(batches, self.totals(words, 3))

    def add(self, count, launch):
        self.launches[self.part, launch] += count

    def product(self, kernel, rows, columns, depth, result, dram, parts=1):
        """A product: result is what its epilogue reads and writes, in bytes. Blocks may share
        the depth of a tile."""
        tile = kernel if self.factor == 4 else "half_" + {"update": "accumulate"}.get(kernel, kernel)
        size = lambda what: constants[f"{tile}_{what}".upper()]
        name = f"{kernel}_float16_{self.precision}" if (kernel, self.state) == ("correlate", "float16") else f"{kernel}_{self.precision}"
        code = self.codes[self.gpu.architecture][name]
        blocks = parts * math.ceil(rows / size("rows")) * math.ceil(columns / size("columns"))
        steps = math.ceil(depth / size("depth") / parts)
        warps = math.ceil(blocks / self.gpu.sms) * constants["PRODUCT_THREADS"] // 32  # of the SM that has most
        return Launch(
            name,
            (("issue", warps * (steps * code.step + code.rest) / 4),
             ("tensor", warps * steps * code.mma / self.gpu.mma),
             ("shared", warps * steps * code.shared / 128)),
            blocks * steps * size("depth") * (size("rows") + size("columns")) * self.factor + parts * result, dram)

    def rows(self, rows, vectors, numbers, matrices, dram):
        """The row machine: instructions on vectors and on numbers, and matrices that they read and write."""
        warps = math.ceil(rows / self.gpu.sms)
        return Launch("body", (("issue", warps * (vectors * ROW_ISSUE + numbers * NUMBER_ISSUE) / 4),), matrices * rows * DIM * 4, dram)

    def finish(self, words, dram):
        return Launch("finish_codes", (), dram, dram)

    def totals(self, rows, sums):
        return Launch("totals", (("latency", sums * SUM_LATENCY * self.gpu.clock),), 8 * rows * sums, 0)

    def seconds(self, launch):
        """Returns what a launch takes, and what bounds it."""
        times = {name: clocks / self.gpu.clock for name, clocks in launch.clocks}
        times |= {"L2": launch.l2 / self.gpu.l2, "DRAM": launch.dram / self.gpu.dram}
        bound = max(times, key=times.get)
        return START + times[bound], bound

    def sums(self):
        """Returns the seconds of each part."""
        sums = collections.Counter()
        for (part, launch), count in self.launches.items():
            sums[part] += count * self.seconds(launch)[0]
        return sums

    def table(self):
        print(f"{self.gpu.name}, {self.name}".ljust(36) + "launches  issue  tensor  shared   L2 MB  DRAM MB   each, µs      ms")
        for (part, launch), count in self.launches.items():
            seconds, bound = self.seconds(launch)
            clocks = dict(launch.clocks)
            cell = lambda name: f"{clocks[name] / 1000:.0f}k" if name in clocks else ""
            print(f"  {part:11} {launch.kernel:22}{count:8.0f} {cell('issue'):>7} {cell('tensor'):>7} {cell('shared'):>7}"
                  f"{launch.l2 / 1e6:8.0f}{launch.dram / 1e6:9.0f}{seconds * 1e6:7.1f} {bound:7}{count * seconds * 1e3:5.1f}")
        sums = self.sums()
        print(f"  {'':11} {'the epoch':22}" + f"{1e3 * sums.total():.1f} ms: {', '.join(f'{part} {1e3 * s:.1f}' for part, s in sums.items())}".rjust(66) + "\n")


def check(document, epochs):
    """Compares epochs with a document's table of them: a row a precision and state, a column a GPU."""
    table = re.search(r"^\| an epoch, ms \|.*\n(?:\|.*\n)*", document.read_text(), re.MULTILINE)
    if not table:
        sys.exit(f'model.py: {document} lacks the table "an epoch, ms"')
    (_, *gpus), _, *rows = [[cell.replace("`", "").strip() for cell in line.strip("|").split("|")] for line in table[0].splitlines()]
    written = {(name, gpu): ms for name, *cells in rows for gpu, ms in zip(gpus, cells)}
    counted = {(e.name, e.gpu.name): f"{1e3 * e.sums().total():.1f}" for e in epochs}
    wrong = [f"{' on '.join(key)}: {written.get(key, 'nothing')}, counted {counted.get(key, 'nothing')}"
             for key in sorted(written.keys() | counted.keys()) if written.get(key) != counted.get(key)]
    if wrong:
        sys.exit("\n".join([f"model.py: {document} does not have the ms of an epoch as they are counted now:", *wrong]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", type=pathlib.Path, metavar="DOCUMENT")
    parser.add_argument("ptxas", nargs="?", default=os.environ.get("PTXAS"))
    parser.add_argument("nvdisasm", nargs="?", default=os.environ.get("NVDISASM"))
    args = parser.parse_args()
    if not args.ptxas or not args.nvdisasm:
        parser.error("give the paths of ptxas and nvdisasm, or set PTXAS and NVDISASM to them")
    codes = {gpu.architecture: {} for gpu in GPUS}
    for architecture, of in codes.items():
        for name in "decode", "accumulate", "correlate":
            kernels = disassemble(args.ptxas, args.nvdisasm, here / f"{name}.ptx", architecture)
            of |= {kernel: Code(*code) for kernel, code in kernels.items() if kernel.endswith(("_tf32", "_fp16"))}
    epochs = [Epoch(gpu, precision, state, codes) for gpu in GPUS for precision in ("tf32", "fp16") for state in ("float32", "float16")]
    if args.check:
        check(args.check, epochs)
        return
    for architecture, of in codes.items():
        for name, code in of.items():
            print(f"{architecture} {name:22} {code.step:5} instructions a warp and step, {code.mma:6} multiplications, "
                  f"{code.shared:6} bytes of shared memory; {code.rest} instructions around the loop")
    print()
    for epoch in epochs:
        epoch.table()


constants = {name: int(n) for name, n in re.findall(r"^constexpr int (\w+) = (\d+);", (here.parent / "abi.cuh").read_text(), re.MULTILINE)}

if __name__ == "__main__":
    main()
