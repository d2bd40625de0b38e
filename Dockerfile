# The image of the webhook: one static binary and nothing else. deploy/image.sh makes the binaries, calls this, and checks what comes
# out; the context is a folder with one binary per architecture (amd64/gmsa-webhook, arm64/gmsa-webhook).
FROM scratch

ARG TARGETARCH
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title="gmsa-webhook" \
      org.opencontainers.image.description="Admission webhook for Windows Group Managed Service Accounts (GMSA) in Kubernetes" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

COPY --chmod=0555 ${TARGETARCH}/gmsa-webhook /gmsa-webhook

# The allocator returns freed pages at once: later would be at the next allocation, which an idle process does not make.
ENV MIMALLOC_PURGE_DELAY=0

# By number, so that Kubernetes can see that it is not root. Nobody in particular: there is no /etc/passwd.
USER 65532:65532
ENTRYPOINT ["/gmsa-webhook"]
