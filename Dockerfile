# The image of gatehouse, for those who build with a daemon. `make image` packs the same content and configuration
# without one: both run tools/rootfs.sh, and both read what follows the last FROM.
#
#   docker build --build-arg VERSION=0.1.0 --build-arg REVISION=$(git rev-parse HEAD) -t gatehouse.dev/gatehouse:0.1.0 .

# Debian 12: its glibc is linked into the program.
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
ARG IMAGE_PROFILE=dist
RUN tools/rootfs.sh /rootfs

FROM scratch
COPY --from=build /rootfs /
# No shell, no package manager, no certificates: gatehouse trusts the authority that its ServiceAccount names.
USER 65532:65532
WORKDIR /
EXPOSE 9443 8080
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="gatehouse"
LABEL org.opencontainers.image.description="Operator and webhooks for EtcdCluster, TDSet and DatabaseMigration"
LABEL org.opencontainers.image.licenses="Apache-2.0"
LABEL org.opencontainers.image.version="${VERSION}"
LABEL org.opencontainers.image.revision="${REVISION}"
ENTRYPOINT ["/gatehouse"]
CMD ["serve"]
