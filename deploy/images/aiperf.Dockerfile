# AIPerf from PyPI: every package pinned by version and hash. From the repository's root:
#   docker build -f deploy/images/aiperf.Dockerfile --build-arg COMMIT="$(git rev-parse HEAD)" \
#     -t ghcr.io/perfvalidation/aiperf:0.13.0 deploy/images
# Python 3.11, as in the lab's image, which installs the same list.
FROM python:3.11.14-slim-bookworm@sha256:65a93d69fa75478d554f4ad27c85c1e69fa184956261b4301ebaf6dbb0a3543d AS build
COPY aiperf-0.13.0.txt crick-build.txt /
RUN ["python", "-m", "venv", "--without-pip", "/opt/aiperf"]
# crick alone has no wheel for arm64, so that its source, which the list pins too, is built there.
RUN set --; \
    if [ "$(uname -m)" = aarch64 ]; then \
      apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev && set -- --no-binary=crick; \
    fi; \
    PIP_CONSTRAINT=/crick-build.txt pip --python=/opt/aiperf/bin/python install --no-cache-dir --no-deps \
      --only-binary=:all: "$@" --require-hashes --requirement=/aiperf-0.13.0.txt

FROM python:3.11.14-slim-bookworm@sha256:65a93d69fa75478d554f4ad27c85c1e69fa184956261b4301ebaf6dbb0a3543d
ARG COMMIT
LABEL org.opencontainers.image.title="aiperf" \
      org.opencontainers.image.description="AIPerf for the trials of perfvalidation-operator" \
      org.opencontainers.image.source="https://github.com/perfvalidation/perfvalidation-operator" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.13.0" \
      org.opencontainers.image.revision="${COMMIT}"
COPY --from=build /opt/aiperf /opt/aiperf
# The trial's pod has a read-only root file system and may write to /tmp only.
ENV PATH=/opt/aiperf/bin:/usr/local/bin:/usr/bin:/bin HOME=/tmp PYTHONUNBUFFERED=1
WORKDIR /tmp
USER 65532:65532
ENTRYPOINT ["aiperf"]
