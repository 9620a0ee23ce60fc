# etcd as its project ships it, as far as manifests can tell: the three programs in /usr/local/bin, no shell, root, no
# entry point, and data in the working folder. tools/build.sh images makes the folder and the image.
FROM scratch
COPY rootfs /
WORKDIR /var/lib/etcd/
EXPOSE 2379 2380
CMD ["/usr/local/bin/etcd"]
