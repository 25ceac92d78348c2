# The image contains both programs. The command of a container selects the program and its roles.
FROM golang:1.26.11-trixie AS build
WORKDIR /src
ENV CGO_ENABLED=0
COPY go.mod go.sum ./
RUN go mod download
COPY activities activities
COPY internal internal
COPY starter starter
COPY worker worker
COPY workflows workflows
# What the programs say about themselves: --build-arg VERSION=1.4.0 --build-arg COMMIT=$(git rev-parse HEAD)
# --build-arg COMMIT_DATE=2026-05-04T03:02:01Z
ARG VERSION
ARG COMMIT
ARG COMMIT_DATE
RUN flags="-s -X berth/internal/version.number=$VERSION -X berth/internal/version.commit=$COMMIT -X berth/internal/version.date=$COMMIT_DATE" && \
    go build -trimpath -ldflags="$flags" -o /out/berth-worker ./worker && \
    go build -trimpath -ldflags="$flags" -o /out/starter ./starter

FROM debian:13.1-slim
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/berth-worker /out/starter /usr/local/bin/
USER 65532:65532
WORKDIR /tmp
EXPOSE 8778
# Liveness only: a restart does not help while PostgreSQL or Temporal is unavailable.
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s CMD ["starter", "probe"]
CMD ["berth-worker"]
