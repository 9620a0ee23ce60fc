# What holds the namespaces of a pod, as Kubernetes ships it. tools/build.sh images makes the folder and the image.
FROM scratch
COPY rootfs /
USER 65535:65535
ENTRYPOINT ["/pause"]
