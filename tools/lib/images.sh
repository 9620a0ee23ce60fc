# Sourced by build.sh: the images that the local cluster runs without a registry, as archives.
# shellcheck shell=bash

# The reference that containerd of the local cluster is told to take the pause image by.
readonly PAUSE=registry.k8s.io/pause:3.10.1
readonly ETCD=quay.io/coreos/etcd
readonly BUSYBOX=docker.io/library/busybox:1.35

# What the base of etcd's own image has beside the programs.
etcd_rootfs() {
    local bin=$1 rootfs=$2
    install -d -m 755 "$rootfs"/{etc,usr/local/bin,var/etcd,var/lib/etcd,root,home/nonroot}
    install -d -m 1777 "$rootfs/tmp"
    install -m 755 "$bin"/{etcd,etcdctl,etcdutl} "$rootfs/usr/local/bin"
    printf '%s\n' 'root:x:0:0:root:/root:/sbin/nologin' 'nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin' \
        'nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin' >"$rootfs/etc/passwd"
    printf '%s\n' root:x:0: nobody:x:65534: nonroot:x:65532: >"$rootfs/etc/group"
    printf 'hosts: files dns\n' >"$rootfs/etc/nsswitch.conf"
    chmod 644 "$rootfs"/etc/*
}

# From the C source that Kubernetes keeps of it.
pause_rootfs() {
    local family=$1 rootfs=$2 sources
    command -v cc >/dev/null || fail "cc is not installed; install a C compiler and the C library's headers (Debian: gcc libc6-dev)"
    sources=$(sources_of "$family" k8s.io/kubernetes)
    install -d -m 755 "$rootfs"
    cc -Os -Wall -Werror -static -s -DVERSION="v${PAUSE##*:}" -o "$rootfs/pause" "$sources/build/pause/linux/pause.c"
    chmod 755 "$rootfs/pause"
}

# A shell for tests, from the static binary that Debian has.
busybox_rootfs() {
    local busybox=$1 rootfs=$2 applet
    install -d -m 755 "$rootfs"/{bin,etc}
    install -d -m 1777 "$rootfs/tmp"
    install -m 755 "$busybox" "$rootfs/bin/busybox"
    while IFS= read -r applet; do
        [[ $applet == busybox ]] || ln -s busybox "$rootfs/bin/$applet"
    done < <("$busybox" --list)
    printf '%s\n' root:x:0:0:root:/:/bin/sh nobody:x:65534:65534:nobody:/:/bin/sh >"$rootfs/etc/passwd"
    chmod 644 "$rootfs/etc/passwd"
}

# image KIND FROM NAME REFERENCE INGREDIENT...: makes <images>/NAME.tar, unless it is there and made from the same.
# KIND_rootfs fills a folder with what is made FROM; the ingredients are files that tell one such content from another.
image() {
    local kind=$1 from=$2 name=$3 reference=$4 archive sum
    shift 4
    images_folder && archive=$REPLY/$name.tar
    sum=$(cat -- "$tools/image.sh" "$tools/lib/archive.sh" "$tools/lib/images.sh" "$tools/images/$kind.Dockerfile" "$@" | sha256sum | cut -d' ' -f1)
    if [[ -f $archive && -f $archive.stamp && $(<"$archive.stamp") == "$sum" ]]; then
        say "$reference is there already"
        return
    fi
    lock
    scratch=$(mktemp -d)
    "${kind}_rootfs" "$from" "$scratch/rootfs"
    "$tools/image.sh" --plain "$tools/images/$kind.Dockerfile" "$scratch/rootfs" "$reference" "$archive"
    rm -rf -- "$scratch"
    scratch=
    printf '%s\n' "$sum" >"$archive.stamp"
    say "$reference: made"
}

# Needs every etcd to have been built.
build_images() {
    local family version bin
    for family in $(families | grep '^etcd'); do
        version_of "$family" && version=$REPLY
        bin_of "$family" && bin=$REPLY
        image etcd "$bin" "etcd-$version" "$ETCD:v$version" "${bin%/bin}"/stamps/{etcd,etcdctl,etcdutl}
    done
    family=kubernetes-$DEFAULT_KUBERNETES
    image pause "$family" pause "$PAUSE" "$tools/$family/go.mod"
    if bin=$(command -v busybox) && ! ldd "$bin" >/dev/null 2>&1; then
        image busybox "$bin" busybox "$BUSYBOX" "$bin"
    else
        say "$BUSYBOX is not made, which the tests of the cluster need: install a static busybox (tools/node-packages.sh)"
    fi
}
