#!/usr/bin/env bash
# Builds the Dockerfile's last stage with a builder and compares the image with the one that `make image` packed: the
# content with modes and owners, and the configuration. Prints the differences and fails if there are any.
#
#   tools/image-check.sh
#
# Wants target/image/ of `make image`, and buildah (a package of most distributions). The build stage is not run: what
# it gives, tools/rootfs.sh has given already.
set -euo pipefail

# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
cd -- "$tools/.."

readonly ARCHIVE=target/image/gatehouse.tar
scratch=

# In a store of its own.
builder() { buildah --root "$scratch/store" --runroot "$scratch/run" --storage-driver vfs "$@"; }

cleanup() {
    [[ -z $scratch ]] || { builder rm --all >/dev/null 2>&1 && builder rmi --all --force >/dev/null 2>&1; rm -rf -- "$scratch"; }
}

# What an image is, as lines: its configuration, then its files.
describe() {
    local image=$1 container mounted field
    for field in User Entrypoint Cmd WorkingDir Env ExposedPorts Labels Volumes StopSignal; do
        printf '%s %s\n' "$field" "$(builder inspect --type image --format "{{printf \"%q\" .OCIv1.Config.$field}}" "$image")"
    done
    container=$(builder from "$image")
    mounted=$(builder mount "$container")
    (cd -- "$mounted" && find . -mindepth 1 -printf '%P %y %m %U:%G %l\n' | LC_ALL=C sort)
    (cd -- "$mounted" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
}

main() {
    local labels=()
    case ${1:-} in
    -h | --help)
        usage "${BASH_SOURCE[0]}"
        return
        ;;
    esac
    command -v buildah >/dev/null || fail "buildah is not installed (Debian: apt-get install --no-install-recommends buildah)"
    [[ -f $ARCHIVE && -d target/image/rootfs ]] || fail "there is no $ARCHIVE; run make image"
    # Mounting an image takes root, or a user namespace that looks like it.
    ((EUID == 0)) || exec buildah unshare "${BASH_SOURCE[0]}"
    scratch=$(mktemp -d)
    trap cleanup EXIT
    mkdir -- "$scratch/context"
    awk 'toupper($1) == "FROM" { text = "" } { text = text $0 "\n" } END { printf "%s", text }' Dockerfile >"$scratch/Dockerfile"
    builder pull --quiet "oci-archive:$ARCHIVE" >"$scratch/packed"
    # shellcheck disable=SC2016 # a Go template
    mapfile -t labels < <(builder inspect --type image --format \
        '{{range $k, $v := .OCIv1.Config.Labels}}{{$k}}={{$v}}{{"\n"}}{{end}}' "$(<"$scratch/packed")" |
        sed -n 's/^org.opencontainers.image.\(version\|revision\)=\(.*\)/\1=\2/p' | sed 's/^[a-z]*/\U&/; s/^/--build-arg=/')
    builder bud --quiet --isolation chroot --identity-label=false --build-context build=target/image "${labels[@]}" \
        --file "$scratch/Dockerfile" --tag built "$scratch/context" >/dev/null
    describe "$(<"$scratch/packed")" >"$scratch/packed.txt"
    describe built >"$scratch/built.txt"
    diff -u --label "make image" "$scratch/packed.txt" --label Dockerfile "$scratch/built.txt" ||
        fail "the image of the Dockerfile is not the one of make image"
    say "the Dockerfile gives the image of make image: $(grep -c '^[0-9a-f]\{64\} ' "$scratch/built.txt") files, the same configuration"
}

main "$@"
