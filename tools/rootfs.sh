#!/usr/bin/env bash
# Builds gatehouse as a static program and lays out, in a folder, all that its image holds.
#
#   tools/rootfs.sh FOLDER [ARCHITECTURE]
#
# ARCHITECTURE is amd64 or arm64: this machine's unless it is named. For another one the compiler's target has to be
# installed (rustup target add aarch64-unknown-linux-gnu) and a C compiler for it (Debian: gcc-aarch64-linux-gnu
# libc6-dev-arm64-cross). CARGO and RUSTC name another cargo and rustc: where rustup has no target, Debian's rustc-web,
# cargo-web and libstd-rust-web-dev:arm64 have.
#
# The same sources give the same bytes in every folder and for every user. AUDITABLE names the program cargo-auditable:
# with it, the program holds the list of the crates that it is made of.
#
# IMAGE_PROFILE is the cargo profile: `dist`, which ships, unless it is set; `release` builds in a third of the time, `quick`,
# which the checks use, in less, and `dev` is for trials.
# `make image` packs the folder, and the Dockerfile's build stage runs this very script.
set -euo pipefail

# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/archive.sh
source "$tools/lib/archive.sh"

readonly NONROOT=65532

# The C compiler for an architecture, in REPLY.
compiler_of() {
    local architecture=$1
    REPLY=cc
    [[ $architecture == "$(architecture)" ]] || REPLY=$(machine_of "$architecture")-linux-gnu-gcc
}

machine_of() {
    case $1 in
    amd64) printf x86_64 ;;
    arm64) printf aarch64 ;;
    *) fail "$1: no image is made for it; there is: amd64 arm64" ;;
    esac
}

need_compiler() {
    local architecture=$1 compiler tool
    compiler_of "$architecture" && compiler=$REPLY
    for tool in "${CARGO:-cargo}" "$compiler" readelf; do
        command -v "$tool" >/dev/null ||
            fail "$tool is not installed; needed are Rust (https://rustup.rs), a C compiler and binutils (Debian:" \
                "gcc binutils libc6-dev, and for another architecture gcc-aarch64-linux-gnu libc6-dev-arm64-cross)"
    done
    # The compiler answers with a bare name where it knows no such file.
    [[ $("$compiler" -print-file-name=libc.a) == */* ]] ||
        fail "the static C library is missing; install it (Debian: libc6-dev, Fedora: glibc-static)"
}

# No interpreter and no library may be asked for: the image has none.
check_static() {
    local asked
    asked=$(LC_ALL=C readelf --program-headers --dynamic --wide -- "$1" | grep -E '\(NEEDED\)|Requesting program interpreter' || true)
    [[ -z $asked ]] || fail "$1 is not static: $asked"
}

# No path of this machine is in the program: neither of the sources nor of what cargo fetched and generated.
hide_paths() {
    local target=$1 built=$2 map='' pair name=${1//-/_}
    for pair in "${CARGO_HOME:-$HOME/.cargo}=/cargo" "$built=/target" "$PWD=/gatehouse"; do
        RUSTFLAGS+=" --remap-path-prefix=$pair"
        map+=" -ffile-prefix-map=$pair"
    done
    # Random numbers come by the system call: the getrandom crate looks it up in a shared C library, finds none in a
    # static program and would fall back to /dev/urandom.
    RUSTFLAGS+=' -C target-feature=+crt-static -C link-arg=-Wl,--build-id=none --cfg getrandom_backend="linux_getrandom"'
    export RUSTFLAGS "CFLAGS_$name=${map# }" "CXXFLAGS_$name=${map# }"
}

# Prints where the program is.
build_static() {
    local architecture=$1 profile=${IMAGE_PROFILE:-dist} machine target program folder built cargo=("${CARGO:-cargo}")
    machine=$(machine_of "$architecture")
    # glibc's, whatever the host's own libc is: its resolver is part of it and needs no files at run time.
    target=$machine-unknown-linux-gnu
    built=$(realpath -m -- "${CARGO_TARGET_DIR:-target}")
    folder=$profile
    if [[ $profile == dev ]]; then
        folder=debug
        # Debug information would be nine tenths of the image.
        export CARGO_PROFILE_DEV_DEBUG=false CARGO_PROFILE_DEV_STRIP=debuginfo
    fi
    RUSTFLAGS=
    hide_paths "$target" "$built"
    compiler_of "$architecture"
    if [[ $REPLY != cc ]]; then
        export "CARGO_TARGET_${machine^^}_UNKNOWN_LINUX_GNU_LINKER=$REPLY" "CC_${machine}_unknown_linux_gnu=$REPLY"
    fi
    # Kernels for ARM64 have pages of 4, 16 or 64 KiB: with the largest as its page, jemalloc runs on all of them.
    [[ $architecture != arm64 ]] || export JEMALLOC_SYS_WITH_LG_PAGE=16
    [[ -z ${AUDITABLE:-} ]] || cargo=("$AUDITABLE" auditable)
    "${cargo[@]}" build --locked --package gatehouse --bin gatehouse --profile "$profile" --target "$target" >&2
    program=$built/$target/$folder/gatehouse
    check_static "$program"
    printf '%s' "$program"
}

main() {
    local rootfs=${1:-} architecture=${2:-} program
    case $rootfs in
    '') fail "the folder to fill is wanted; see $0 --help" ;;
    -h | --help)
        usage "${BASH_SOURCE[0]}"
        return
        ;;
    esac
    rootfs=$(realpath -m -- "$rootfs")
    cd -- "$tools/.."
    [[ -n $architecture ]] || architecture=$(architecture)
    need_compiler "$architecture"
    program=$(build_static "$architecture")
    rm -rf -- "$rootfs"
    install -d -m 755 "$rootfs" "$rootfs/etc"
    install -m 555 "$program" "$rootfs/gatehouse"
    install -m 444 LICENSE "$rootfs/LICENSE"
    install -m 444 /dev/stdin "$rootfs/etc/passwd" <<<"nonroot:x:$NONROOT:$NONROOT:nonroot:/:/sbin/nologin"
    install -m 444 /dev/stdin "$rootfs/etc/group" <<<"nonroot:x:$NONROOT:"
}

main "$@"
