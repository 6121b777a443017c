# What measures the training on a machine with an NVIDIA GPU and neither Go nor a CUDA
# toolkit: copy build/gpu-bundle.tar.gz there, unpack it and run gpu.sh. See bench/results/README.md.
#
# It needs a C compiler and cuda.h, of CUDA 11.8 to 12.x: set CGO_CFLAGS=-I… if that is
# not in /usr/local/cuda/include.

bundle = build/gpu-bundle
build = CGO_ENABLED=1 go build -tags gpu -trimpath -ldflags='-s -w'
most = 60 # megabytes

.PHONY: gpu-bundle
gpu-bundle:
	rm -rf $(bundle)
	mkdir -p $(bundle)
	$(build) -o $(bundle)/overcomplete .
	$(build) -o $(bundle)/bench ./bench
	CGO_ENABLED=1 go test -c -tags gpu -trimpath -ldflags='-s -w' -o $(bundle)/kernels.test ./kernels
	cp bench/gpu.sh bench/peers/torch_rda.py $(bundle)
	tar -C build -czf $(bundle).tar.gz gpu-bundle
	@size=$$(($$(wc -c <$(bundle).tar.gz) / 1000000)); echo "$(bundle).tar.gz: $$size MB"; \
	[ $$size -lt $(most) ] || { echo "$(bundle).tar.gz must be smaller than $(most) MB"; exit 1; }

# What is measured on a CPU: see bench/results/README.md. BENCH has flags of "bench cpu".
results = bench/results/xeon-avx512-2026-11-21

.PHONY: bench-cpu
bench-cpu:
	mkdir -p $(results)
	go run ./bench cpu --json $(results)/bench.json $(BENCH) >$(results)/table.txt
	go run ./bench growth --json $(results)/growth.json --plot $(results)/growth >$(results)/growth.txt
	cat $(results)/table.txt $(results)/growth.txt
