#!/usr/bin/env python3
"""Builds wheels in dist/, each with the program for one platform. Builds are reproducible: a commit has one output.

usage: build.py [TARGET ...]

A target is an operating system and a processor in Go's names, such as linux/amd64. linux/amd64/gpu builds the wheel
overcomplete-vectors-gpu, with GPU support, and requires a C compiler and cuda.h (CGO_CFLAGS).
"""

import base64
import hashlib
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
# Platform tags of wheels. A program without C runs on any Linux, with any libc.
TAGS = {
    "linux/amd64": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    "linux/arm64": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    "darwin/arm64": "macosx_12_0_arm64",
    "windows/amd64": "win_amd64",
    "linux/amd64/gpu": "manylinux_{glibc}_x86_64",
}
SUMMARY = "Sparse, overcomplete word and text vectors whose dimensions people can read"
VERSION = re.search(r'const Version = "(.*)"', (ROOT / "cli/version.go").read_text())[1]


def output(*command: str, **environment: str) -> bytes:
    return subprocess.run(command, cwd=ROOT, env=os.environ | environment, check=True, stdout=subprocess.PIPE).stdout


def glibc(program: bytes) -> str:
    """Returns the version of the C library that a program requires, in the notation of tags: 2_34."""
    versions = [(int(a), int(b)) for a, b in re.findall(rb"GLIBC_(\d+)\.(\d+)", program)]
    return "{}_{}".format(*max(versions))


def metadata(name: str) -> str:
    return f"""Metadata-Version: 2.4
Name: {name}
Version: {VERSION}
Summary: {SUMMARY}
License-Expression: Apache-2.0
License-File: LICENSE
License-File: THIRD_PARTY_LICENSES.txt
Requires-Python: >=3.10
Requires-Dist: numpy>=1.24
Requires-Dist: scipy>=1.11
Provides-Extra: sklearn
Requires-Dist: scikit-learn>=1.6; extra == "sklearn"
Description-Content-Type: text/markdown

{(HERE / "README.md").read_text("utf-8")}"""


def build(target: str) -> Path:
    """Builds the wheel of a target and returns its path."""
    system, processor, *gpu = target.split("/")
    tags = ["-tags", "gpu"] if gpu else []
    environment = {"GOOS": system, "GOARCH": processor, "CGO_ENABLED": "1" if gpu else "0"}
    built = ROOT / "build" / "wheel-program"
    # Without the build ID, which depends on the path of the C headers.
    output("go", "build", *tags, "-buildvcs=auto", "-trimpath", "-ldflags=-s -w -buildid=", "-o", str(built), ".", **environment)
    program = built.read_bytes()
    built.unlink()
    tag = TAGS[target].format(glibc=glibc(program) if gpu else "")
    name = "overcomplete_vectors" + ("_gpu" if gpu else "")
    info = f"{name}-{VERSION}.dist-info"
    executable = "overcomplete" + (".exe" if system == "windows" else "")
    files = {f"overcomplete_vectors/{f.name}": f.read_bytes() for f in sorted((HERE / "overcomplete_vectors").iterdir()) if f.is_file()}
    files[f"{name}-{VERSION}.data/scripts/{executable}"] = program
    files[f"{info}/METADATA"] = metadata(name.replace("_", "-")).encode()
    kinds = "".join(f"Tag: py3-none-{t}\n" for t in tag.split("."))
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: build.py of overcomplete\nRoot-Is-Purelib: false\n{kinds}".encode()
    files[f"{info}/licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    files[f"{info}/licenses/THIRD_PARTY_LICENSES.txt"] = output(".ci/licences", *tags, **environment)
    record = ""
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        record += f"{path},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    wheel = ROOT / "dist" / f"{name}-{VERSION}-py3-none-{tag}.whl"
    wheel.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            member = zipfile.ZipInfo(path)  # dated 1980, for reproducible builds
            member.external_attr = (0o100755 if "/scripts/" in path else 0o100644) << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, data)
    return wheel


if __name__ == "__main__":
    for target in sys.argv[1:] or TAGS:
        if target not in TAGS:
            sys.exit(f"build.py: unknown target (got {target}, want one of {', '.join(TAGS)})")
        wheel = build(target)
        print(f"{wheel.relative_to(ROOT)}: {wheel.stat().st_size / 1e6:.1f} MB")
