# What there is to build and to check. .ci/run runs all the checks; each runs alone as well.
#
# What they need beside Go and a C compiler, "make tools" puts into build/, in pinned
# versions. Or name what you have:
#
#	OVERCOMPLETE_PYTHON    a Python that has the packages of .ci/requirements.txt
#	OVERCOMPLETE_CHROMIUM  Chromium, or Chrome
#	OVERCOMPLETE_DATA      a folder with published vectors and tasks, for tests with those
#	CUDA_HOME              a folder that has include/cuda.h, of CUDA 11.8 to 13.x
#	NVRTC                  libnvrtc.so.11.2, of CUDA 11.8
#	PTXAS                  ptxas, of CUDA 12.9
#
# Tests that lack one of the first three are skipped, and say so.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.PHONY: tools gpu gpu-bundle release lint cross generate ptx test gpu-test gpu-asan gpu-headers sample arm64 race fuzz first bench-cpu

# --- Tools

python := build/python/bin/python
pip := $(python) -m pip install -q --disable-pip-version-check

tools: build/python/packages build/cuda-11.8/include/cuda.h build/cuda-12.9/include/cuda.h build/cuda-13.5/include/cuda.h build/nvrtc build/ptxas
	find . -name go.mod -not -path './build/*' -execdir go mod download \;
	go mod tidy -diff # downloads more: what tests of others' packages import
	$(staticcheck) -version

$(python):
	python3 -m venv build/python || { rm -rf build/python; exit 1; }

build/python/packages: .ci/requirements.txt | $(python)
	$(pip) -r $<
	touch $@

# Of CUDA, its header, the compiler of the committed PTX and its assembler are enough.
build/cuda-11.8/include/cuda.h: wheel = nvidia-cuda-runtime-cu11==11.8.89
build/cuda-12.9/include/cuda.h: wheel = nvidia-cuda-runtime-cu12==12.9.79
build/cuda-13.5/include/cuda.h: wheel = nvidia-cuda-runtime==13.5.37
build/cuda-%/include/cuda.h: | $(python)
	$(pip) --no-deps --target build/cuda-$* $(wheel)
	ln -sfn $$(cd build/cuda-$* && echo nvidia/*/include) build/cuda-$*/include

build/nvrtc: | $(python)
	$(pip) --no-deps --target $@ nvidia-cuda-nvrtc-cu11==11.8.89

build/ptxas: | $(python)
	$(pip) --no-deps --target $@ nvidia-cuda-nvcc-cu12==12.9.86

ifneq ($(wildcard build/python/packages),)
export OVERCOMPLETE_PYTHON ?= $(CURDIR)/$(python)
endif
export OVERCOMPLETE_CHROMIUM ?= $(shell command -v chromium || command -v google-chrome)

# --- Programs

# GPU support is compiled with cuda.h: one that CGO_CFLAGS leads to, that of CUDA_HOME, one
# in the usual places, or else one that is fetched.
CGO_CFLAGS ?= -O2 -g
ifeq ($(findstring -I,$(CGO_CFLAGS)),)
CUDA_HOME ?= $(firstword $(patsubst %/include/cuda.h,%,$(wildcard $(addsuffix /include/cuda.h, \
	$(CUDA_PATH) /usr/local/cuda /usr/local/cuda-* /opt/cuda /usr))) build/cuda-12.9)
cuda_h = $(CUDA_HOME)/include/cuda.h
endif
with_cuda = CGO_ENABLED=1 CGO_CFLAGS="$(strip -I$(CURDIR)/kernels/driver/cuda13 $(CGO_CFLAGS) $(patsubst %/cuda.h,-I%,$(abspath $(cuda_h))))"

gpu: $(cuda_h)
	$(with_cuda) go build -tags gpu .

# What measures the training on a machine with an NVIDIA GPU and neither Go nor a CUDA
# toolkit: copy build/gpu-bundle.tar.gz there, unpack it and run gpu.sh. See bench/results/README.md.
bundle = build/gpu-bundle
stripped = -tags gpu -trimpath -ldflags='-s -w'
most = 60 # megabytes

gpu-bundle: $(cuda_h)
	rm -rf $(bundle)
	mkdir -p $(bundle)
	$(with_cuda) go build $(stripped) -o $(bundle)/overcomplete .
	$(with_cuda) go build $(stripped) -o $(bundle)/bench ./bench
	$(with_cuda) go test -c $(stripped) -o $(bundle)/kernels.test ./kernels
	cp bench/gpu.sh bench/peers/torch_rda.py $(bundle)
	tar -C build -czf $(bundle).tar.gz gpu-bundle
	@size=$$(($$(wc -c <$(bundle).tar.gz) / 1000000)); echo "$(bundle).tar.gz: $$size MB"; \
	[ $$size -lt $(most) ] || { echo "$(bundle).tar.gz must be smaller than $(most) MB"; exit 1; }

# --- Checks

staticcheck = go run honnef.co/go/tools/cmd/staticcheck@v0.8.2
verbose = -v -count=1 -timeout=30m
need = command -v $(1) >/dev/null || { echo "make $@: $(1) is missing: install it (in Debian, $(2))" >&2; exit 1; }
# The README's command that starts so.
readme = $(or $(shell sed -n 's/^    \(go $(1) .*\)/\1/p' README.md | head -1),$(error README.md lacks its command "go $(1) …"))

lint: $(cuda_h)
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "gofmt would change: $$unformatted"; exit 1; }
	go mod verify
	go mod tidy -diff
	go vet ./... ./testdata
	$(staticcheck) ./... ./testdata
	$(with_cuda) go vet -tags gpu ./...
	$(with_cuda) $(staticcheck) -tags gpu ./...

# Without cgo, here and for other systems. As for a release, so that those share what is compiled.
cross:
	CGO_ENABLED=0 go build -o build/overcomplete .
	for target in linux/arm64 darwin/arm64 windows/amd64; do \
		CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/} go vet -trimpath ./...; \
	done

# Makes the generated files again, and fails when they were others.
generate:
	@sums() { find cpu kernels -type f -exec sha256sum {} + | sort -k 2; }; \
	before=$$(sums); set -x; go generate ./cpu/... ./kernels/...; diff <(echo "$$before") <(sums)

# The committed PTX is what the kernels compile to, and takes the registers that are recorded.
NVRTC ?= build/nvrtc/nvidia/cuda_nvrtc/lib/libnvrtc.so.11.2
PTXAS ?= build/ptxas/nvidia/cuda_nvcc/bin/ptxas
ptx: $(filter build/nvrtc/%,$(NVRTC)) $(filter build/ptxas/%,$(PTXAS))
	python3 kernels/ptx/build.py --check $(NVRTC)
	python3 kernels/ptx/ptxas.py --check $(PTXAS)
build/nvrtc/%: build/nvrtc ;
build/ptxas/%: build/ptxas ;

test:
	GOFLAGS="$(verbose)" $(call readme,test)

# GPU support, on the emulated driver.
gpu-test: $(cuda_h)
	$(with_cuda) go test -tags gpu $(verbose) ./kernels/... ./internal/cli ./bench
	$(with_cuda) go test -tags gpu -asan -count=1 -timeout=20m ./kernels

# GPU support builds with the header of every CUDA.
gpu-headers:
	for version in 11.8 12.9 13.5; do $(MAKE) --no-print-directory gpu CUDA_HOME=build/cuda-$$version; done

# The sample vectors are what their generator makes.
sample:
	go test $(verbose) ./testdata

# The kernels of arm64, emulated.
arm64:
	@$(call need,qemu-aarch64-static,qemu-user-static)
	CGO_ENABLED=0 GOARCH=arm64 go test -exec qemu-aarch64-static -short -count=1 -timeout=30m ./cpu/...

# Where there are goroutines. The race detector does not see into assembly: plain Go is enough.
race:
	go test -race -short -skip '/avx' -count=1 -timeout=30m ./cpu/... ./train ./vectors/... ./eval ./interpret/... ./internal/...

# Counted, not timed: go test may report its own deadline as a failure.
fuzz:
	for file in $$(grep -rl --include='*_test.go' '^func Fuzz' .); do \
		for target in $$(sed -n 's/^func \(Fuzz[^(]*\).*/\1/p' $$file); do \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime 30000x -fuzzminimizetime 10x ./$$(dirname $$file); \
		done; \
	done

# The README's first command does what it says.
first: command = $(call readme,run . train)
first: model = $(shell echo '$(command)' | sed 's/.* -o \([^ ]*\).*/\1/')
first:
	@: "$${OVERCOMPLETE_PYTHON:?make first needs NumPy and SciPy: run make tools, or set this}"
	$(command) | tee build/first.log
	trap 'rm -rf $(model)' EXIT; \
	grep -q 'top words' build/first.log; \
	$$OVERCOMPLETE_PYTHON .ci/check_model.py testdata/godoc.50d.txt.gz $(model)

# --- Measurements

# What is measured on a CPU: see bench/results/README.md. BENCH has flags of "bench cpu".
results = bench/results/xeon-avx512-2026-11-21

bench-cpu:
	mkdir -p $(results)
	go run ./bench cpu --json $(results)/bench.json $(BENCH) >$(results)/table.txt
	go run ./bench growth --json $(results)/growth.json --plot $(results)/growth >$(results)/growth.txt
	cat $(results)/table.txt $(results)/growth.txt
