#!/usr/bin/env bash
# Builds gatehouse as a static program and lays out, in a folder, all that its image holds.
#
#   tools/rootfs.sh FOLDER
#
# IMAGE_PROFILE is the cargo profile: `dist`, which ships, unless it is set; `release` builds in a third of the time, `quick`,
# which the checks use, in less, and `dev` is for trials.
# `make image` packs the folder, and the Dockerfile's build stage runs this very script.
set -euo pipefail

# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"

readonly NONROOT=65532

need_compiler() {
    local tool
    for tool in cargo cc readelf; do
        command -v "$tool" >/dev/null ||
            fail "$tool is not installed; needed are Rust (https://rustup.rs), a C compiler and binutils (Debian: gcc binutils libc6-dev)"
    done
    # The compiler answers with a bare name where it knows no such file.
    [[ $(cc -print-file-name=libc.a) == */* ]] ||
        fail "the static C library is missing; install it (Debian: libc6-dev, Fedora: glibc-static)"
}

# glibc's, whatever the host's own libc is: its resolver is part of it and needs no files at run time.
target() {
    local host
    host=$(rustc -vV | sed -n 's/^host: //p')
    case $host in
    x86_64-*-linux-* | aarch64-*-linux-*) printf '%s-unknown-linux-gnu' "${host%%-*}" ;;
    *) fail "no image is made on $host; x86_64 and aarch64 Linux are known" ;;
    esac
}

# No interpreter and no library may be asked for: the image has none.
check_static() {
    local asked
    asked=$(LC_ALL=C readelf --program-headers --dynamic --wide -- "$1" | grep -E '\(NEEDED\)|Requesting program interpreter' || true)
    [[ -z $asked ]] || fail "$1 is not static: $asked"
}

# Prints where the program is.
build_static() {
    local profile=${IMAGE_PROFILE:-dist} target program folder
    target=$(target)
    folder=$profile
    if [[ $profile == dev ]]; then
        folder=debug
        # Debug information would be nine tenths of the image.
        export CARGO_PROFILE_DEV_DEBUG=false CARGO_PROFILE_DEV_STRIP=debuginfo
    fi
    # Random numbers come by the system call: the getrandom crate looks it up in a shared C library, finds none in a
    # static program and would fall back to /dev/urandom.
    RUSTFLAGS='-C target-feature=+crt-static --cfg getrandom_backend="linux_getrandom"' \
        cargo build --locked --package gatehouse --bin gatehouse --profile "$profile" --target "$target" >&2
    program=${CARGO_TARGET_DIR:-target}/$target/$folder/gatehouse
    check_static "$program"
    printf '%s' "$program"
}

main() {
    local rootfs=${1:-} program
    case $rootfs in
    '') fail "the folder to fill is wanted; see $0 --help" ;;
    -h | --help)
        usage "${BASH_SOURCE[0]}"
        return
        ;;
    esac
    rootfs=$(realpath -m -- "$rootfs")
    cd -- "$tools/.."
    need_compiler
    program=$(build_static)
    rm -rf -- "$rootfs"
    install -d -m 755 "$rootfs" "$rootfs/etc"
    install -m 555 "$program" "$rootfs/gatehouse"
    install -m 444 LICENSE "$rootfs/LICENSE"
    install -m 444 /dev/stdin "$rootfs/etc/passwd" <<<"nonroot:x:$NONROOT:$NONROOT:nonroot:/:/sbin/nologin"
    install -m 444 /dev/stdin "$rootfs/etc/group" <<<"nonroot:x:$NONROOT:"
}

main "$@"
