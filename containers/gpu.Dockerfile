# The program with GPU support, of overcomplete-linux-amd64.tar.gz unpacked (make release): docs/release.md.
FROM debian:12-slim
# What of the driver the container runtime is to put into the container.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
# The driver keeps what it compiles for the GPU here: mount it to compile once only.
ENV CUDA_CACHE_PATH=/cache
RUN mkdir -m 1777 /cache
COPY overcomplete LICENSE THIRD_PARTY_LICENSES.txt /
USER 65534
WORKDIR /data
ENTRYPOINT ["/overcomplete"]
