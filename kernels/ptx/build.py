#!/usr/bin/env python3
"""Compiles ../*.cu to the PTX beside this script, with NVRTC.

usage: build.py [--check] [LIBNVRTC]

LIBNVRTC is the path of libnvrtc.so.11.2 of CUDA 11.8, by default the environment
variable NVRTC. (The wheel nvidia-cuda-nvrtc-cu11, version 11.8.89, contains it.) The
same version generates the same PTX on any machine. --check writes nothing: it compares
with the present files, and exits with 1 if any differs.
"""

import argparse
import ctypes
import os
import pathlib
import sys

VERSION = (11, 8)  # of NVRTC; other versions generate different PTX
OPTIONS = ["--gpu-architecture=compute_80", "--std=c++17"]

here = pathlib.Path(__file__).resolve().parent


class NVRTC:
    def __init__(self, path):
        try:
            # NVRTC opens its second library by name, so load it first.
            for builtins in pathlib.Path(path).resolve().parent.glob("libnvrtc-builtins.so.*"):
                ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
            self.library = ctypes.CDLL(path)
        except OSError as error:
            sys.exit(f"build.py: {error}")
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        if (major.value, minor.value) != VERSION:
            sys.exit(f"build.py: {path} is NVRTC {major.value}.{minor.value}; the PTX is made with {VERSION[0]}.{VERSION[1]}")

    def call(self, name, *args):
        status = getattr(self.library, name)(*args)
        if status != 0:
            text = self.library.nvrtcGetErrorString
            text.restype = ctypes.c_char_p
            raise RuntimeError(f"{name}: {text(status).decode()}")

    def text(self, program, kind):
        size = ctypes.c_size_t()
        self.call(f"nvrtcGet{kind}Size", program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        self.call(f"nvrtcGet{kind}", program, text)
        return text.value

    def compile(self, source, headers):
        """Returns the PTX of a file. The compiler gets the names of files without their folders."""
        strings = lambda items: (ctypes.c_char_p * len(items))(*items)
        program = ctypes.c_void_p()
        self.call("nvrtcCreateProgram", ctypes.byref(program), source.read_bytes(), source.name.encode(), len(headers),
                  strings([h.read_bytes() for h in headers]), strings([h.name.encode() for h in headers]))
        try:
            self.call("nvrtcCompileProgram", program, len(OPTIONS), strings([o.encode() for o in OPTIONS]))
            return self.text(program, "PTX")
        except RuntimeError as error:
            sys.exit(f"build.py: {source.name}: {error}\n{self.text(program, 'ProgramLog').decode()}")
        finally:
            self.call("nvrtcDestroyProgram", ctypes.byref(program))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("libnvrtc", nargs="?", default=os.environ.get("NVRTC"))
    args = parser.parse_args()
    if not args.libnvrtc:
        parser.error("no LIBNVRTC: give the path of libnvrtc.so.11.2, or set NVRTC to it")
    nvrtc = NVRTC(args.libnvrtc)
    headers = sorted(here.parent.glob("*.cuh"))
    present = {path.name: path.read_bytes() for path in here.glob("*.ptx")}
    compiled = {f"{source.stem}.ptx": nvrtc.compile(source, headers) for source in here.parent.glob("*.cu")}
    differ = sorted(name for name in compiled.keys() | present.keys() if compiled.get(name) != present.get(name))
    if args.check:
        for name in differ:
            print(f"build.py: {name} differs from the PTX of its source; run build.py", file=sys.stderr)
        sys.exit(bool(differ))
    for name in differ:
        if name in compiled:
            (here / name).write_bytes(compiled[name])
        else:
            (here / name).unlink()


if __name__ == "__main__":
    main()
