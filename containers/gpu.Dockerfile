# The program with GPU support, of overcomplete-linux-amd64.tar.gz unpacked (make release): docs/reference/release.md.
FROM debian:12-slim
# The parts of the driver that the container runtime mounts.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
# The driver's cache of compiled kernels.
ENV CUDA_CACHE_PATH=/cache
RUN mkdir -m 1777 /cache
COPY overcomplete LICENSE THIRD_PARTY_LICENSES.txt /
USER 65534
WORKDIR /data
ENTRYPOINT ["/overcomplete"]
