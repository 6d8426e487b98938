# The operator and its runner: two static programs and nothing else. From the repository's root:
#   docker build -f deploy/images/operator.Dockerfile --build-arg VERSION=0.1.0 --build-arg COMMIT="$(git rev-parse HEAD)" \
#     -t ghcr.io/perfvalidation/perfvalidation-operator:v0.1.0 .
FROM rust:1.95.0-slim-bookworm@sha256:d7482085ff5b415f84dba5647ae71606650bdef00db7aeb69f4b3d170c3e4082 AS build
ARG COMMIT
WORKDIR /src
COPY . .
# An explicit target keeps build scripts dynamic. The toolchain is the image's: rust-toolchain.toml also asks for linters.
ENV RUSTUP_TOOLCHAIN=1.95.0 \
    RUSTFLAGS="-C target-feature=+crt-static --remap-path-prefix=/src=. --remap-path-prefix=/usr/local/cargo=cargo" \
    PERFVAL_REVISION="${COMMIT}"
RUN target="$(uname -m)-unknown-linux-gnu" \
    && cargo build --locked --release --target "$target" -p perfval-operator -p perfval-runner \
    && mkdir /programs && cp target/"$target"/release/perfvalidation-operator target/"$target"/release/perfval-runner /programs

FROM scratch
ARG VERSION
ARG COMMIT
LABEL org.opencontainers.image.title="perfvalidation-operator" \
      org.opencontainers.image.description="Measures a node's GPUs by serving a model on them" \
      org.opencontainers.image.source="https://github.com/perfvalidation/perfvalidation-operator" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${COMMIT}"
COPY --from=build /programs /
COPY LICENSE /LICENSE
USER 65532:65532
ENTRYPOINT ["/perfvalidation-operator"]
