#!/usr/bin/env python3
"""Computes, without a GPU, how long training and encoding take on some, and what bounds each
kernel: 400,000 words × 300 → 3000.

    paper   an epoch of train --recipe paper: 128 dictionary steps and one of the codes
    best    train with its defaults: learning from the 60,000 most frequent words, twice, in 128
            batches each, then encoding all
    encode  encoding alone, with encode's defaults

usage: model.py [--rates BENCH.json] [--check DOCUMENT | --write DOCUMENT] [PTXAS [NVDISASM]]

PTXAS and NVDISASM are paths of ptxas of CUDA 12.9 and nvdisasm; without them the
environment variables of these names say. --write puts the tables that DOCUMENT marks into it,
--check exits 1 if they are not there as they are counted now. --rates takes the rates that
"bench gpu" has measured on a GPU, and prints the tables of that one.

A launch is counted as things that go on beside each other, of which the longest is its time:

    issue    instructions, from the machine code, for all warps of an SM, a quarter of them to
             each scheduler; those of a product's loop as often as it has steps
    tensor   mma at the rate that mma.sync reaches
    shared   128 bytes a clock of what goes into shared memory and out of it
    double   float64 instructions, of which some chips do few
    port     what an SM reads and writes, where it is by itself
    L2       all that the blocks read and write
    DRAM     each matrix that L2 does not hold from one launch to the next, once
    latency  what a warp waits for: of products the copies of a step, and in kernels of few
             warps one instruction for another (see Code.walk)

Each is computed twice: as a floor, with nothing in the way, and as is likely, with the second
of each pair below. Blocks go to SMs in equal shares, but whole ones. Rows of the row machine
are counted by what an instruction of it takes on a row, ROW_ISSUE.
"""

import argparse
import collections
import difflib
import functools
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

WORDS, ATOMS, DIM, STEPS = 400_000, 3000, 300, 128
CODE_BATCH = 16384  # words of a code step, as kernels/plan.go has it
ROW_ISSUE = 260  # instructions of a warp for one of the row machine, on a row of 300
NUMBER_ISSUE = 40  # and for one on numbers

# The recipe best: train/defaults.go, train/online.go, encode/encode.go, internal/backend/fista.go.
TAUGHT, PASSES, BLOCK = 20 * ATOMS, 2, 4096  # rows to learn from, and that are encoded at a time
FISTA_STEPS, POLISH_STEPS = 16, 5

# Pairs are of the floor, and of what is likely. All of these are assumed, but for HOST_ROW.
START = 1.0e-6, 2.5e-6  # seconds from one launch's end to the next one's work: in a graph, in a stream
REACHED = 1, 0.75  # of what bounds a launch: nothing overlaps perfectly
HELD = 0.8, 0.5  # of L2, whose halves may both hold what all SMs read
LOADED = 0, 700  # clocks until a copy begins to arrive, from an L2 that is busy
EDGE = 0, 1500  # clocks of a block before its first step and after its last, if no other block hides them
L2_LATENCY = 260, 400  # clocks
PORT = 64  # bytes that an SM has from L2 in a clock
SUM_LATENCY = 2.5e-6, 4e-6  # seconds of one SM, which reads a number of each row and adds up across its threads
SWEEPS = {"keep_largest": (6, 11), "keep_largest_fp16": (4, 5)}  # over a row; 11 and 5 at most
ITERATIONS = 5, 16  # of power, from where it ended the last time: in a training of the sample vectors

# Seconds of the host for each row that is encoded, while the GPU has others, vectors and codes in memory: 0.24e-6 to centre
# it and 0.20e-6 to copy its code (BenchmarkEncoderHost of kernels), and 0.70e-6 to measure and keep it (BenchmarkStream/memory
# of encode), on two cores of an AMD EPYC of 2017 (Zen 1).
HOST_ROW = 0, 0.99e-6
HOST_BATCH = 0, 1e-4  # and for each batch that is learned from, with the GPU idle: it waits for numbers twice

# Of a chip: KB of shared memory that a block may have at most, and float64 instructions of a
# thread that an SM does in a clock, both from NVIDIA's programming guide.
Chip = collections.namedtuple("Chip", "shared doubles")
CHIPS = {"sm_80": Chip(163, 32), "sm_86": Chip(99, 2), "sm_89": Chip(99, 2), "sm_90": Chip(227, 64), "sm_100": Chip(227, 64), "sm_120": Chip(99, 2)}

# Clock in Hz, DRAM and L2 in bytes a second, mma in multiplications of 16-bit factors by an SM
# in a clock.
#
# SMs, clocks and L2's size are the data sheets'; the H100's second clock is what its data sheet's
# tensor rates are computed with, its first the highest. DRAM is about 0.9 of the data sheets.
# Of their tensor rates mma.sync reaches all on the A100 and on GeForce (with float32 sums), and 62 %
# on Hopper (arXiv:2402.13499). Of L2 the H100's 6.65e12 is "measured" in XLA's
# cost model (gpu_dot_fusion_cost_model.cc); 5.5e12 is about what a PCIe card of 114 SMs reads; the others' are assumed.
GPU = collections.namedtuple("GPU", "name architecture sms clock dram l2 l2_size mma tf32_cost start")
GPUS = [
    GPU("A100", "sm_80", 108, (1.41e9, 1.41e9), (1.8e12, 1.8e12), (4.5e12, 4.0e12), 40e6, 1024, 2, START),
    GPU("H100", "sm_90", 132, (1.98e9, 1.755e9), (3.0e12, 3.0e12), (6.65e12, 5.5e12), 50e6, 1270, 2, START),
    GPU("H200", "sm_90", 132, (1.98e9, 1.755e9), (4.3e12, 4.3e12), (6.65e12, 5.5e12), 50e6, 1270, 2, START),
    GPU("RTX 4090", "sm_89", 128, (2.7e9, 2.52e9), (0.93e12, 0.93e12), (5.0e12, 4.0e12), 72e6, 256, 2, START),
]


def measured(path):
    """Returns the GPU that a report of "bench gpu" is of, with the rates that it has measured."""
    report = json.loads(path.read_text())
    p, architecture = report["peaks"], "sm_" + report["compute_capability"].replace(".", "")
    if architecture not in CHIPS:
        sys.exit(f"model.py: {path} is of {architecture}, which CHIPS lacks")
    twice = lambda x: (x, x)
    sms, clock = p["multiprocessors"], p["clock_hertz"]
    return GPU(report["device"], architecture, sms, twice(clock), twice(p["copy_bytes_per_second"]), twice(p["l2_bytes_per_second"]),
               p["l2_size_bytes"], p["fp16_flops_per_second"] / 2 / sms / clock, p["fp16_flops_per_second"] / p["tf32_flops_per_second"],
               (p["graph_launch_seconds"], p["launch_seconds"]))


here = pathlib.Path(__file__).resolve().parent
abi = (here.parent / "abi.cuh").read_text()
constants = {name: int(n) for name, n in re.findall(r"^constexpr int (\w+) = (\d+);", abi, re.MULTILINE)}
registers = {(kernel, architecture): int(n) for kernel, architecture, n, *_ in map(str.split, (here / "ptxas.txt").read_text().splitlines()[1:])}  # of a thread
PRODUCT_WARPS = constants["PRODUCT_THREADS"] // 32
FILES = "decode", "accumulate", "correlate", "encode", "learner"

Instruction = collections.namedtuple("Instruction", "name writes reads")  # registers, but for the results of stores and branches


class Code:
    """A kernel's machine code, but for what lies behind its end: ways that are seldom taken."""

    def __init__(self, body):
        self.instructions, self.loops = [], []  # loops as their first and last instruction, inner ones first
        self.jumps = {}  # forwards: to where, and whether always
        labels, jumps = {}, {}
        for line in body.splitlines():
            if label := re.match(r"(\.L_\w+):", line):
                labels[label[1]] = len(self.instructions)
            elif found := re.match(r"\s+/\*[0-9a-f]+\*/\s+(?:\{ )?(@!?U?P\w+ )?\s*([A-Z0-9_.]+)(.*?);", line):
                condition, name, operands = found[1] or "", found[2], found[3]
                to = re.search(r"`\((\.L_\w+)\)", operands)
                if name == "BRA" and to:
                    if to[1] in labels:
                        self.loops.append((labels[to[1]], len(self.instructions)))
                    else:
                        jumps[len(self.instructions)] = to[1], not condition
                registers = [re.findall(r"\bU?[RP]\d+\b", operand) for operand in operands.split(",")]
                if registers and not registers[0]:  # a predicate that is not wanted, or an address
                    registers = registers[1:] if operands.split(",")[0].strip() == "PT" else [[], *registers]
                writes = [] if name.startswith(("ST", "RED", "BRA")) else registers[0][:1] if registers else []
                reads = [r for operand in registers[bool(writes):] for r in operand] + re.findall(r"U?P\d+", condition)
                self.instructions.append(Instruction(name, writes, reads))
                if name == "EXIT" and not condition:
                    break
        self.loops.sort(key=lambda l: l[1] - l[0])
        self.jumps = {at: (labels[to], always) for at, (to, always) in jumps.items() if to in labels}

    def count(self, loop, name):
        return sum(i.name.startswith(name) for i in self.instructions[loop[0] : loop[1] + 1])

    def walk(self, trips, load, skips=None):
        """Walks a warp through the code: an instruction begins when the one before it has begun and what it reads is
        there. It returns the clocks, instructions, and instructions on doubles. trips(loop, depth) is how often a
        loop, in depth others, is gone through. Branches forwards are not taken, or with skips, which is asked whether
        what lies between two instructions is left out. load is the clocks of a load."""
        latency = lambda name: next((clocks for prefix, clocks in (
            ("LDG", load), ("LDS", 30), ("SHFL", 25), ("BAR", 30), ("MUFU", 20), ("F2F", 12), ("D", 8), ("S2R", 20)) if name.startswith(prefix)), 4)
        ready, done = {}, [0, 0, 0]  # when registers are, and what is returned

        def part(first, last, depth):
            at = first
            while at <= last:
                loop = next((l for l in reversed(self.loops) if l[0] == at and l[1] <= last and (l != (first, last) or not depth)), None)
                if loop and loop not in inside:
                    inside.append(loop)
                    n = trips(loop, depth)
                    for _ in range(min(2, math.ceil(n))):  # the second time is as all others
                        before = list(done)
                        part(*loop, depth + 1)
                    for i in range(3 if n > 2 else 0):
                        done[i] += (n - 2) * (done[i] - before[i])
                    if n > 2:  # so much later, too, is what is still under way
                        later = (n - 2) / (n - 1) * (done[0] - before[0])
                        ready.update({r: t + later for r, t in ready.items() if t > before[0]})
                    inside.remove(loop)
                    at = loop[1] + 1
                    continue
                i = self.instructions[at]
                if skips and at in self.jumps and at < (to := self.jumps[at][0]) <= last and (self.jumps[at][1] or skips(at + 1, to - 1)):
                    at = to - 1
                done[0] = max([done[0] + 1] + [ready.get(r, 0) for r in i.reads])
                for r in i.writes:
                    ready[r] = done[0] + latency(i.name)
                if i.name.startswith("BAR"):
                    done[0] += latency(i.name)
                done[1] += 1
                done[2] += bool(re.match(r"D(FMA|ADD|MUL|SETP)", i.name))
                at += 1

        inside = []
        part(0, len(self.instructions) - 1, 0)
        return done


@functools.cache
class Step:
    """What a product's kernel takes: of a step of its loop, and around it. A warp has so many
    multiplications in a step: loops in it are gone through as often as they take."""

    MMA = {"HMMA.16816": 16 * 8 * 16, "HMMA.1688": 16 * 8 * 8}

    def __init__(self, code, multiplications):
        # The loop over steps is the one around both the copies and the products.
        step = next(l for l in code.loops if code.count(l, "LDGSTS") and code.count(l, "HMMA"))
        inner = next((l for l in code.loops if step[0] <= l[0] and l[1] < step[1] and code.count(l, "HMMA")), (0, -1))
        of = lambda loop, what: sum(what(i.name) for i in code.instructions[loop[0] : loop[1] + 1])
        mma = lambda name: next((n for prefix, n in self.MMA.items() if name.startswith(prefix)), 0)
        once = of(inner, mma)
        trips = (multiplications - of(step, mma) + once) / (once or 1) if once else 1
        if trips != int(trips) or not once and of(step, mma) != multiplications:
            sys.exit(f"model.py: a step has {of(step, mma)} multiplications a warp, {once} of them in a loop, and should have {multiplications}")
        total = lambda what: of(step, what) + (trips - 1) * of(inner, what)
        self.issue, self.rest = total(lambda name: 1), len(code.instructions) - of(step, lambda name: 1)
        self.mma16 = total(lambda name: mma(name) * name.startswith("HMMA.16816"))
        self.mma32 = total(lambda name: mma(name) * name.startswith("HMMA.1688."))
        self.shared = total(self.shared_bytes)

    @staticmethod
    def shared_bytes(name):
        """Of a warp, as shared memory moves them: 128 in each clock."""
        if name.startswith("LDGSTS"):
            return 512
        if name.startswith("LDSM"):
            return 128 * int(name[-1])
        if name.startswith("LDS"):
            return {"64": 256, "128": 512}.get(name.rpartition(".")[2], 128)
        return 0


def disassemble(ptxas, nvdisasm, architecture):
    """Returns the kernels' code on an architecture."""
    codes = {}
    for name in FILES:
        with tempfile.NamedTemporaryFile() as cubin:
            subprocess.run([ptxas, "-arch", architecture, "-o", cubin.name, here / f"{name}.ptx"], check=True)
            text = subprocess.run([nvdisasm, "-c", cubin.name], check=True, capture_output=True, text=True).stdout
        codes |= {kernel: Code(body) for kernel, body in re.findall(r"^\.text\.(\w+):\n(.*?)(?=^//-----|\Z)", text, re.MULTILINE | re.DOTALL)}
    return codes


# Clocks of an SM, by what takes them, and that nothing hides; bytes.
Launch = collections.namedtuple("Launch", "kernel clocks waits l2 dram")


class Count:
    """The launches of a recipe on a GPU, in a precision, and what the host does. end is 0 for
    the floor, and 1 for what is likely."""

    def __init__(self, gpu, precision, codes, end):
        self.gpu, self.precision, self.codes, self.end = gpu, precision, codes, end
        self.factor = 2 if precision == "fp16" else 4  # bytes
        self.chip, self.clock, self.l2 = CHIPS[gpu.architecture], gpu.clock[end], gpu.l2[end]
        self.launches = []  # parts, launches and their numbers
        self.host, self.meanwhile = collections.Counter(), collections.Counter()  # seconds of the host in a part, with the GPU idle and not
        self.part = ""
        self.fill()

    def add(self, count, launch):
        self.launches.append((self.part, launch, count))

    def kept(self, bytes):
        """Whether L2 keeps so much."""
        return bytes < HELD[self.end] * self.gpu.l2_size

    def product(self, kernel, rows, columns, depth, result, dram, precision=None, parts=1, symmetric=False):
        """A product: result is what its epilogue reads and writes, in bytes. Blocks may share
        the depth of a tile, or make half of a symmetric result."""
        precision = precision or self.precision
        name, factor = f"{kernel}_{precision}", 2 if precision == "fp16" else 4
        if kernel == "correlate_float16":
            kernel = "correlate"
        tile = {"update": "accumulate", "fista": "correlate"}.get(kernel, kernel)
        size = lambda what: constants["_".join(["HALF"] * (factor == 2) + [tile.upper(), what])]
        stages, shared = size("STAGES"), size("SHARED")
        if name == "decode_fp16" and self.chip.shared << 10 >= constants["AHEAD_HALF_DECODE_SHARED"]:
            name, stages, shared = "decode_ahead_fp16", constants["AHEAD_HALF_DECODE_STAGES"], constants["AHEAD_HALF_DECODE_SHARED"]
        products = (3 if precision == "fp32" else 1) * (2 if tile == "accumulate" else 1)
        step = Step(self.codes[name], products * size("ROWS") * size("COLUMNS") * size("DEPTH") // PRODUCT_WARPS)
        down = math.ceil(rows / size("ROWS"))
        blocks = down * (down + 1) // 2 if symmetric else parts * down * math.ceil(columns / size("COLUMNS"))
        steps = math.ceil(depth / size("DEPTH") / parts)
        most = math.ceil(blocks / self.gpu.sms)  # of an SM
        beside = min(most, (self.chip.shared + 1 << 10) // (shared + 1024), 65536 // (registers[name, self.gpu.architecture] + 7 & ~7) // constants["PRODUCT_THREADS"])
        warps, copied = most * PRODUCT_WARPS, size("DEPTH") * (size("ROWS") + size("COLUMNS")) * factor
        arrives = LOADED[self.end] + copied * min(blocks, self.gpu.sms * beside) / self.l2 * self.clock / beside
        return Launch(
            name,
            (("issue", warps * (steps * step.issue + step.rest) / 4),
             ("tensor", warps * steps * (step.mma16 + step.mma32 * self.gpu.tf32_cost) / self.gpu.mma),
             ("shared", warps * steps * step.shared / 128),
             ("latency", most * steps * arrives / (beside * (stages - 1)))),
            math.ceil(most / beside) * EDGE[self.end],
            blocks * steps * copied + parts * result, dram)

    def rows(self, rows, vectors, numbers, matrices, dram):
        """The row machine: instructions on vectors and on numbers, and matrices that they read and write."""
        warps = math.ceil(rows / self.gpu.sms)
        return Launch("body", (("issue", warps * (vectors * ROW_ISSUE + numbers * NUMBER_ISSUE) / 4),), EDGE[self.end], matrices * rows * DIM * 4, dram)

    def totals(self, rows, sums):
        return Launch("totals", (("latency", sums * SUM_LATENCY[self.end] * self.clock),), 0, 8 * rows * sums, 0)

    def moved(self, kernel, l2, dram):
        """A kernel that does little but read and write."""
        return Launch(kernel, (), EDGE[self.end], l2, dram)

    def walked(self, kernel, warps, trips, load, l2, together, sms):
        """A kernel whose warps, so many of an SM, and of them so many together, wait for their own instructions."""
        clocks, instructions, doubles = self.codes[kernel].walk(trips, load[self.end])
        return Launch(kernel, (("latency", clocks * math.ceil(warps / together)), ("issue", warps * instructions / 4),
                               ("double", warps * doubles * 32 / self.chip.doubles), ("port", l2 / sms / PORT)), EDGE[self.end], l2, 0)

    def seconds(self, launch):
        """Returns what a launch takes, and what bounds it."""
        times = {name: clocks / self.clock for name, clocks in launch.clocks}
        times |= {"L2": launch.l2 / self.l2, "DRAM": launch.dram / self.gpu.dram[self.end]}
        for name in times.keys() - {"latency"}:
            times[name] /= REACHED[self.end]
        bound = max(times, key=times.get)
        return self.gpu.start[self.end] + times[bound] + launch.waits / self.clock, bound

    def sums(self):
        """Returns the seconds of each part."""
        sums = collections.Counter()
        for part, launch, count in self.launches:
            sums[part] += count * self.seconds(launch)[0]
        return collections.Counter({part: max(sums[part], self.meanwhile[part]) + self.host[part] for part in sums})


class Paper(Count):
    """An epoch of the recipe paper."""

    def __init__(self, gpu, precision, codes, end, state="float32"):
        self.state = state
        super().__init__(gpu, precision, codes, end)

    def fill(self):
        words = math.ceil(WORDS / STEPS)
        vectors, atoms = words * DIM * 4, ATOMS * DIM * 4
        factors = words * ATOMS * self.factor
        kept = 0 if self.kept(factors + 4 * vectors + 6 * atoms) else factors  # of them, that L2 does not keep
        self.part = "dictionary"
        parts = 2 if self.precision == "fp16" else 1  # which the row machine adds up
        halves = 1 if self.precision == "fp16" else 0  # an instruction that copies what is made for the next product
        self.add(STEPS, self.product("decode", words, DIM, ATOMS, vectors, factors, parts=parts))
        self.add(STEPS, self.rows(words, 1 + parts + halves, 1, 2 + parts + halves / 2, vectors))  # R, Σ R²
        self.add(STEPS, self.totals(words, 1))
        if halves:
            self.add(STEPS, self.product("update", ATOMS, DIM, words, 4.5 * atoms, kept))  # D, H, v1
        else:
            self.add(STEPS, self.product("accumulate", ATOMS, DIM, words, 2 * atoms, kept))
            self.add(STEPS, self.rows(ATOMS, 15, 0, 6, 0))
        self.add(STEPS, self.product("decode", words, DIM, ATOMS, vectors, kept, parts=parts))
        self.add(STEPS, self.rows(words, 1 + parts, 2, 1 + parts, 0))  # Σ R∘p, Σ p²
        self.add(STEPS, self.totals(words, 2))
        self.add(STEPS, self.rows(ATOMS, 2 + halves, 0, 3 + halves / 2, 0))  # D
        self.part = "codes"
        words = CODE_BATCH
        vectors, codes, factors = words * DIM * 4, words * ATOMS * 4, words * ATOMS * self.factor
        batches = WORDS / words
        self.add(batches, self.product("decode", words, DIM, ATOMS, vectors, factors))
        self.add(batches, self.rows(words, 1 + halves, 0, 3 + halves / 2, 3 * vectors))  # R
        sums = {"float32": 4, "float16": 2}[self.state] * codes  # S and Q, read and written
        correlate = "correlate" if self.state == "float32" else "correlate_float16"
        self.add(batches, self.product(correlate, words, ATOMS, DIM, sums + factors, sums + factors + vectors))
        self.add(batches, self.product("decode", words, DIM, ATOMS, vectors, factors))
        self.add(batches, self.rows(words, 5, 3, 2, 2 * vectors))  # β, the loss
        self.add(batches, self.moved("finish_codes", 1.5 * factors, 1.5 * factors))  # if half of the rows are scaled
        self.add(batches, self.totals(words, 3))


class Encode(Count):
    """Encoding all words."""

    def fill(self):
        self.encode("encoding", WORDS, BLOCK)
        self.meanwhile[self.part] = WORDS * HOST_ROW[self.end]
        self.add(WORDS / BLOCK, self.moved("pack_codes", 4 * BLOCK * ATOMS, 4 * BLOCK * ATOMS))

    def kernel(self, name):
        """The precision that a kernel has: tf32 where it has not that of all."""
        return self.precision if f"{name}_{self.precision}" in self.codes else "tf32"

    def encode(self, part, words, batch):
        self.part = part
        batches, vectors = words / batch, batch * DIM * 4
        bytes_of = lambda precision: batch * ATOMS * (2 if precision == "fp16" else 4)  # of codes
        kept = lambda precision: 0 if self.kept(2 * bytes_of(precision) + (3 + 2 * shares(precision)) * vectors) else bytes_of(precision)  # of them, that L2 does not keep
        parts = math.ceil(ATOMS / constants["FISTA_COLUMNS"])
        halves = self.precision == "fp16"
        polish = "tf32" if halves else self.precision  # from where codes are floats
        tiles = math.ceil(batch / constants["DECODE_ROWS"]) * math.ceil(DIM / constants["DECODE_COLUMNS"])
        shares = lambda precision: max(2 if precision == "fp16" else 1, min(constants["MOST_SHARES"], BLOCK // batch, 160 // tiles, ATOMS // constants["DECODE_DEPTH"]))
        residuals = lambda precision: batch * ((4 + 8 * shares(precision) + (2 if precision == "fp16" else 4)) * DIM + 4 * parts)
        if halves:
            self.add(batches, self.moved("row_scales", vectors, 0))
        for steps, precision in (FISTA_STEPS, self.precision), (POLISH_STEPS, polish):
            self.add(batches * steps, self.product("decode", batch, DIM, ATOMS, vectors, kept(precision), precision, shares(precision)))
            self.add(batches * steps, self.product("fista", batch, ATOMS, DIM, 3 * bytes_of(precision), 3 * kept(precision), precision))
            kernel = "fista_residuals_fp16" if precision == "fp16" else "fista_residuals"
            self.add(batches * steps, self.residuals(kernel, batch, residuals(precision)))
        self.add(batches, self.keep_largest("keep_largest_fp16" if halves else "keep_largest", batch))
        self.add(batches, self.product("decode", batch, DIM, ATOMS, vectors, kept(polish), "fp32", shares("fp32")))  # the loss
        self.add(batches, self.residuals("fista_residuals", batch, residuals("fp32")))
        self.add(batches, self.moved("finish_codes", bytes_of(polish), kept(polish)))

    def residuals(self, kernel, words, l2):
        """A warp goes over its row, four elements a lane and time, all shares of them at once, after the row's parts."""
        code = self.codes[kernel]

        def trips(loop, depth):
            if depth == 0:
                return 1
            return math.ceil(DIM / 128) if code.count(loop, "STG") else math.ceil(ATOMS / constants["FISTA_COLUMNS"] / 32)

        return self.walked(kernel, math.ceil(words / self.gpu.sms), trips, L2_LATENCY, l2, 32, self.gpu.sms)

    def keep_largest(self, kernel, words):
        """A warp goes over its row, which L2 has, several elements a lane and time: SWEEPS times to find out what stays,
        and once more. An SM has 64 warps, or 48, at a time."""
        code, sweeps, bytes = self.codes[kernel], SWEEPS[kernel][self.end], 2 if kernel.endswith("fp16") else 4

        def trips(loop, depth):
            loads = code.count(loop, "LDG")
            inner = any(l != loop and loop[0] <= l[0] and l[1] <= loop[1] for l in code.loops)
            if inner:  # around the sweeps, or around all of a row
                return sweeps if depth == 1 else 1
            return ATOMS / 32 / loads

        return self.walked(kernel, math.ceil(words / self.gpu.sms), trips, L2_LATENCY, words * ATOMS * (bytes * (sweeps + 1) + 4), 48, self.gpu.sms)


class Best(Encode):
    """Learning and encoding by the recipe best."""

    def __init__(self, gpu, precision, codes, end, taught=TAUGHT):
        self.taught = taught
        super().__init__(gpu, precision, codes, end)

    def fill(self):
        batch, batches = math.ceil(self.taught / STEPS), PASSES * STEPS
        self.encode("learning", PASSES * self.taught, batch)
        self.host[self.part] = batches * HOST_BATCH[self.end]
        self.add(batches, self.moved("gather", 8 * batch * DIM, 0))
        self.add(batches, self.totals(batch, 3))  # loss, nonzeros, Σ|a|
        if self.precision == "fp16":
            self.add(batches, self.moved("to_halves", 6 * ATOMS * DIM, 0))
        gram, atoms = 4 * ATOMS * ATOMS, 4 * ATOMS * DIM
        dram = 0 if self.kept(gram + 5 * atoms) else gram
        precision = self.kernel("remember")
        self.add(batches, self.product("remember", DIM, DIM, ATOMS, 4 * DIM * DIM, 0, precision, symmetric=True))  # DᵀD
        self.add(batches, self.power())
        self.add(batches, self.product("remember", ATOMS, ATOMS, batch, 2 * gram, 2 * dram, precision, symmetric=True))
        self.add(batches, self.product("remember", ATOMS, DIM, batch, 2 * atoms, 0, precision))
        self.add(batches, self.product("decode", ATOMS, DIM, ATOMS, atoms, dram, "fp32"))  # GD
        self.add(batches, self.moved("forces", 5 * atoms, 0))
        blocks = math.ceil(ATOMS / constants["BLOCK_ATOMS"])
        self.add(batches * blocks, self.move_atoms())
        # Of the atoms after a block, half of all on average.
        self.add(batches * (blocks - 1), self.product("remember", ATOMS // 2, DIM, constants["BLOCK_ATOMS"], atoms, 0, precision))
        super().fill()

    def move_atoms(self):
        """One block, with a set of warps for each group of atoms. While a group's atoms move in turn, with a root each, the
        sets of those after it, half of all on average, take each move off, in code without roots or stores. The loop over
        groups has barriers, and one in it reads the sums of a set's warps after its first four."""
        code, block = self.codes["move_atoms"], constants["BLOCK_ATOMS"]
        groups, warps = block // constants["MOVE_TOGETHER"], math.ceil(DIM / 4 / 32)

        def trips(loop, depth):
            if code.count(loop, "BAR"):
                return groups
            if code.count(loop, "LDG"):  # of G, first; or of the moves before a set's next group, which there isn't
                return 0 if depth and code.count(loop, "LDS") else block / 32 if depth == 0 else block / (groups * warps)
            return math.ceil(warps / 4) - 1

        turns = next(loop for loop in code.loops if code.count(loop, "BAR"))
        barrier = max(at for at in range(turns[0], turns[1]) if code.instructions[at].name.startswith("BAR"))  # the set whose turn is next takes a move off
        others = lambda first, last: first > turns[0] and (first < barrier or code.count((first, last), "LDG")) and code.count((first, last), "FFMA") >= 32 and not any(code.count((first, last), n) for n in ("STG", "BAR"))
        in_turn = lambda first, last: any(code.count((first, last), n) for n in ("SHFL", "STG", "MUFU.RSQ")) and not code.count((first, last), "BAR")
        walk = lambda skips: code.walk(trips, L2_LATENCY[self.end], skips)
        clocks, instructions, _ = walk(others)
        later = walk(in_turn)[1] * (groups - 1) / 2
        bytes = 4 * block * (4 * DIM + block)
        return Launch("move_atoms", (("latency", clocks), ("issue", warps * (instructions + later) / 4), ("port", bytes / PORT)), EDGE[self.end], bytes, 0)

    def power(self):
        """One block, of whose warps each multiplies five rows of DᵀD at a time with the vector, and adds up: ITERATIONS times.
        A lane's share of a row is in a loop over two of its elements, and in the code before it."""
        code, warps = self.codes["power"], constants["POWER_THREADS"] // 32

        def trips(loop, depth):
            if code.count(loop, "SHFL"):
                return ITERATIONS[self.end] if depth == 0 else math.ceil(DIM / warps / 5)
            return DIM / 32 // 2 if code.count(loop, "DFMA") else DIM / (32 * warps)

        return self.walked("power", warps, trips, L2_LATENCY, 4 * DIM * DIM * ITERATIONS[self.end], warps, 1)


def interval(low, high, digits=1):
    return f"{low:.{digits}f}–{high:.{digits}f}" if f"{low:.{digits}f}" != f"{high:.{digits}f}" else f"{low:.{digits}f}"


class Range:
    """A recipe's two counts."""

    def __init__(self, name, gpu, counts):
        self.name, self.gpu, self.counts = name, gpu, counts

    def total(self):
        return [count.sums().total() for count in self.counts]

    def kernels(self):
        """Returns, of a part's launches of a kernel, their number, seconds and what bounds them, as a floor and as is
        likely, and the launch of the floor."""
        floor, likely = self.counts
        alike = collections.Counter()
        for (part, launch, count), (_, other, _) in zip(floor.launches, likely.launches, strict=True):
            alike[part, launch, other] += count
        groups = collections.defaultdict(list)
        for (part, launch, other), count in alike.items():
            groups[part, launch.kernel].append((count, *floor.seconds(launch), *likely.seconds(other), launch))
        return groups

    def table(self):
        """Prints all launches."""
        print(f"{self.gpu.name}, {self.name}".ljust(36) + "launches  issue  tensor  shared  double latency   L2 MB  DRAM MB   each, µs             bound             ms")
        for (part, kernel), launches in self.kernels().items():
            for count, low, bound, high, other, launch in launches:
                clocks = dict(launch.clocks)
                cell = lambda name: f"{clocks[name] / 1000:.0f}k" if name in clocks else ""
                print(f"  {part:11} {kernel:22}{count:8.0f} {cell('issue'):>7} {cell('tensor'):>7} {cell('shared'):>7} {cell('double'):>7} {cell('latency'):>7}"
                      f"{launch.l2 / 1e6:8.0f}{launch.dram / 1e6:9.0f}   {interval(low * 1e6, high * 1e6):14}{bound + ' ' + other:>16}{interval(1e3 * count * low, 1e3 * count * high):>14}")
        for part, who, times in self.hosts():
            print(f"  {part:11} {who:22}{times:>99}")
        print(f"  {'':11} all: {interval(*(1e3 * s for s in self.total()))} ms\n")

    def rows(self):
        """Returns the rows of a document's table, of a kernel's launches in a part each."""
        rows = []
        for (part, kernel), launches in self.kernels().items():
            low, high = (sum(l[0] * l[i] for l in launches) for i in (1, 3))
            bounds = " or ".join(dict.fromkeys(b for l in launches for b in (l[2], l[4])))
            each = interval(min(l[1] for l in launches) * 1e6, max(l[3] for l in launches) * 1e6)
            rows.append(f"| {part} | {kernel} | {sum(l[0] for l in launches):,.0f} | {each} | {bounds} | {interval(1e3 * low, 1e3 * high)} |")
        return rows + [f"| {part} | ({who}) | | | | {times} |" for part, who, times in self.hosts()]

    def hosts(self):
        """Returns what the host does: parts, how, and milliseconds."""
        for how, who in ("host", "the host"), ("meanwhile", "the host, meanwhile"):
            for part in getattr(self.counts[0], how):
                yield part, who, interval(*(1e3 * getattr(count, how)[part] for count in self.counts))


def ranges(gpus, codes):
    """Returns what is counted, by recipe, name and GPU."""
    all = {}
    for gpu in gpus:
        def add(recipe, name, kind, precision, **settings):
            all[recipe, name, gpu.name] = Range(name, gpu, [kind(gpu, precision, codes[gpu.architecture], end, **settings) for end in (0, 1)])
        for precision in "tf32", "fp16":
            for state in "float32", "float16":
                add("paper", f"`{precision}`" + (f", `--state {state}`" if state != "float32" else ""), Paper, precision, state=state)
        for precision in (p for p in ("tf32", "fp16", "fp32") if f"fista_{p}" in codes[gpu.architecture]):
            add("best", f"`train`, `{precision}`", Best, precision)
            add("best", f"`train --train-words all`, `{precision}`", Best, precision, taught=WORDS)
            add("best", f"`encode`, `{precision}`", Encode, precision)
    return all


def tables(all):
    """Returns the tables for documents, by the names that these mark them with."""
    gpus = list(dict.fromkeys(gpu for _, _, gpu in all))

    def totals(recipe, head, unit, digits):
        names = dict.fromkeys(name for r, name, _ in all if r == recipe)
        cells = lambda name: " | ".join(interval(*(s / unit for s in all[recipe, name, gpu].total()), digits) for gpu in gpus)
        return [f"| {head} | {' | '.join(gpus)} |", "|---|" + "---:|" * len(gpus), *(f"| {name} | {cells(name)} |" for name in names)]

    result = {"paper": totals("paper", "an epoch, ms", 1e-3, 0), "best": totals("best", "seconds", 1, 2)}
    for (recipe, name, gpu), r in all.items():
        result[f"{recipe}, {name.replace('`', '')}, {gpu}"] = ["| part | kernel | launches | each, µs | bound | ms |", "|---|---|---:|---:|---|---:|", *r.rows()]
    return {name: "\n".join(lines) + "\n" for name, lines in result.items()}


def filled(text, tables):
    """Returns a document with the tables that it marks."""
    def table(mark):
        if mark[2] not in tables:
            sys.exit(f'model.py: there is no table "{mark[2]}"; there are {"; ".join(tables)}')
        return f"{mark[1]}\n\n{tables[mark[2]]}\n{mark[3]}"
    return re.sub(r"(<!-- counted: (.*?) -->)\n.*?(<!-- /counted -->)", table, text, flags=re.DOTALL)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", type=pathlib.Path, metavar="BENCH.json")
    parser.add_argument("--check", type=pathlib.Path, metavar="DOCUMENT")
    parser.add_argument("--write", type=pathlib.Path, metavar="DOCUMENT")
    parser.add_argument("ptxas", nargs="?", default=os.environ.get("PTXAS"))
    parser.add_argument("nvdisasm", nargs="?", default=os.environ.get("NVDISASM"))
    args = parser.parse_args()
    if not args.ptxas or not args.nvdisasm:
        parser.error("give the paths of ptxas and nvdisasm, or set PTXAS and NVDISASM to them")
    gpus = [measured(args.rates)] if args.rates else GPUS
    codes = {architecture: disassemble(args.ptxas, args.nvdisasm, architecture) for architecture in {gpu.architecture for gpu in gpus}}
    all = ranges(gpus, codes)
    document = args.check or args.write
    if not document:
        for r in all.values():
            r.table()
        return
    old = document.read_text()
    new = filled(old, tables(all))
    if args.write:
        document.write_text(new)
    elif new != old:
        differ = difflib.unified_diff(old.splitlines(), new.splitlines(), "there", "now", lineterm="", n=0)
        sys.exit("\n".join([f"model.py: {document} does not have what is counted now; make gpu-tables writes it", *differ]))


if __name__ == "__main__":
    main()
