# The two images of Gatehouse. `make image` builds gatehouse:local, the whole gateway in
# one container: the control plane and the Envoy that it runs. `make image-control-plane`
# builds gatehouse-control-plane:local, the control plane alone, for Envoys elsewhere.
# Neither is built on another image: hack/image.sh puts the files into bin/image, and
# there is no shell and no other program.

FROM scratch AS control-plane

COPY bin/image/gatehouse/ /
COPY --chown=10001:10001 bin/image/data/ /var/lib/
COPY bin/image/control-plane/ /

# Temporary files and sockets go to the volume, too: nothing else is written, so the
# root file system may be read-only.
ENV PATH=/usr/local/bin \
    TMPDIR=/var/lib/gatehouse \
    GATEHOUSE_DATA_DIR=/var/lib/gatehouse \
    GATEHOUSE_LOG_FORMAT=json
VOLUME /var/lib/gatehouse

# A fixed number, so that volumes fit and "not root" can be checked. Every port
# is above 1024: no capability is needed.
USER 10001:10001

# REST API, xDS.
EXPOSE 1323 18000

# It asks at the address that the settings say. They have to be in the environment or
# in a file, because a health check does not see the command line.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["/usr/local/bin/gatehouse", "ready"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/gatehouse"]
CMD ["serve"]

# Last, since they change with every build.
ARG VERSION=unknown
ARG COMMIT=unknown
LABEL org.opencontainers.image.title="Gatehouse control plane" \
      org.opencontainers.image.description="Control plane of an API gateway: configures Envoys with a REST API" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$COMMIT" \
      org.opencontainers.image.source="https://github.com/gatehouse-gateway/gatehouse" \
      org.opencontainers.image.documentation="https://github.com/gatehouse-gateway/gatehouse/blob/main/README.md" \
      org.opencontainers.image.licenses="Apache-2.0"

FROM scratch AS standalone

# Envoy and the C library that it needs; gatehouse is static.
COPY bin/image/envoy/ /
COPY bin/image/gatehouse/ /
COPY --chown=10001:10001 bin/image/data/ /var/lib/
COPY bin/image/standalone/ /

ENV PATH=/usr/local/bin \
    TMPDIR=/var/lib/gatehouse \
    GATEHOUSE_DATA_DIR=/var/lib/gatehouse \
    GATEHOUSE_LOG_FORMAT=json
VOLUME /var/lib/gatehouse
USER 10001:10001

# Meant for the host's network, where this is documentation only: REST API,
# admin port, HTTP, HTTPS, HTTP/3.
EXPOSE 1323 9001 8080 8443 8443/udp

HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["/usr/local/bin/gatehouse", "ready"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/gatehouse"]
CMD ["standalone"]

ARG VERSION=unknown
ARG COMMIT=unknown
LABEL org.opencontainers.image.title="Gatehouse" \
      org.opencontainers.image.description="API gateway: Envoy, configured with a REST API" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$COMMIT" \
      org.opencontainers.image.source="https://github.com/gatehouse-gateway/gatehouse" \
      org.opencontainers.image.documentation="https://github.com/gatehouse-gateway/gatehouse/blob/main/README.md" \
      org.opencontainers.image.licenses="Apache-2.0"
