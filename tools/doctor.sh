#!/usr/bin/env bash
# Says at once all that this machine lacks for a piece of work, why it is needed, and what installs it.
#
#   tools/doctor.sh [WORK...]      check, test, up, e2e, release; all but the last unless some are named
#
# Fails when something is missing. What is there but not built yet is no fault: how long its first build takes is said.
# Installs, downloads and builds nothing.
set -euo pipefail

# With nothing but what bash has of its own: dirname may be missing, too.
here=${BASH_SOURCE[0]%/*}
[[ -d $here ]] || here=.
# shellcheck source=lib/common.sh
source "$here/lib/common.sh"
# shellcheck source=lib/families.sh
source "$tools/lib/families.sh"

readonly GIGABYTE=1000000 # kilobytes
readonly DISK_FIRST=25 DISK_LATER=5 MEMORY=8

root=${tools%/*}
target=${CARGO_TARGET_DIR:-$root/target}
[[ $target == /* ]] || target=$PWD/$target
readonly root target

# The system's folders are not on everyone's PATH.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

work=     # what is asked about, with a space at both ends
faults=() # what is missing, and why it is needed
packages=() # of Debian, that would cure faults
cures=()  # what else would
notes=()  # what is built first

asked() {
    local word
    for word; do
        if [[ $work == *" $word "* ]]; then return 0; fi
    done
    return 1
}
# A program, and not what bash has of the same name.
there() { type -P "$1" >/dev/null; }

# needs NAME PACKAGE WHY: a program.
needs() {
    there "$1" || lacks "$1" "$2" "$3"
}
# lacks NAME PACKAGE WHY
lacks() {
    faults+=("$1: $3")
    [[ " ${packages[*]} " == *" $2 "* ]] || packages+=("$2")
}

# Whether a version is older than another.
older() {
    local have wanted i
    IFS=. read -r -a have <<<"${1%%[!0-9.]*}"
    IFS=. read -r -a wanted <<<"$2"
    for i in "${!wanted[@]}"; do
        if ((10#${have[i]:-0} != 10#${wanted[i]})); then
            ((10#${have[i]:-0} < 10#${wanted[i]}))
            return
        fi
    done
    return 1
}

# ---- programs of the system ----

check_programs() {
    local name
    for name in sed grep sort df sha256sum dirname; do
        needs "$name" "$([[ $name != s?d && $name != grep ]] && say coreutils || say "$name")" 'the scripts of tools/ use it'
    done
    needs awk mawk 'the scripts of tools/ use it'
    needs flock util-linux 'one build at a time writes the cache'
    needs make make 'it starts all work'
    if there cc; then
        # The compiler answers with a bare name where it knows no such file.
        [[ $(cc -print-file-name=crt1.o) == */* ]] || lacks 'the C library to link with' libc6-dev 'Rust programs are linked with it'
    else
        lacks cc gcc 'Rust programs are linked with it, and the cryptography of aws-lc is C'
        packages+=(libc6-dev)
    fi
    asked check e2e release && needs git git 'it tells which files are part of the project, and the revision of the image'
    asked test up e2e && needs kill procps 'programs are ended with it'
    asked test && needs gpg gpg 'the chart of a release is signed with it'
    asked test && needs script bsdutils 'what a terminal shows is tested in one'
    if asked e2e release; then check_image; fi
    if asked release && for_arm64_elsewhere; then
        needs aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu 'the program for arm64 is linked with it'
        ! there aarch64-linux-gnu-gcc || [[ $(aarch64-linux-gnu-gcc -print-file-name=libc.a) == */* ]] ||
            lacks 'the static C library for arm64' libc6-dev-arm64-cross 'the program for arm64 is linked with it'
    fi
}

# Whether a release made here has a program for arm64 that another compiler than this machine's makes.
for_arm64_elsewhere() { [[ $HOSTTYPE == x86_64 && " ${ARCHITECTURES:-amd64 arm64} " == *' arm64 '* ]]; }

check_image() {
    needs tar tar 'the image is packed with it'
    needs gzip gzip 'the image is packed with it'
    needs readelf binutils 'the program in the image is shown to be static with it'
    needs pgrep procps 'the tests of the local cluster find its processes with it'
    if there cc && [[ $(cc -print-file-name=libc.a) != */* ]]; then
        lacks 'the static C library' libc6-dev 'the program in the image is linked with it'
    fi
}

# A node's packages are installed by what needs them, where that is possible.
check_node() {
    ((EUID == 0)) || faults+=("root: a cluster with a node makes namespaces, mounts and control groups")
    check_packages "$tools/node-packages.sh" 'packages that a node needs'
}

check_databases() { check_packages "$tools/database-packages.sh" 'packages of the databases that migrations are tested on'; }

# check_packages SCRIPT WHICH: what the script would install, where that is possible.
check_packages() {
    local script=$1 which=$2 line lines names=()
    there dirname || return 0 # what is missing then is said by check_programs
    lines=$("$script" --missing)
    [[ -n $lines ]] || return 0
    if ((EUID == 0)) && there apt-get; then
        while read -r line; do names+=("${line%%:*}"); done <<<"$lines"
        notes+=("$which are installed first: ${names[*]}")
        return
    fi
    while read -r line; do
        lacks "${line%%:*}" "${line%%:*}" "${line#*: }"
    done <<<"$lines"
}

# ---- Rust ----

# The compiler that is pinned: rust-toolchain.toml names it in full.
pinned_rust() {
    local line
    while IFS= read -r line; do
        if [[ $line =~ ^channel\ =\ \"(.*)\" ]]; then REPLY=${BASH_REMATCH[1]}; return; fi
    done <"$root/rust-toolchain.toml"
    fail "rust-toolchain.toml names no channel"
}

# check_rust VERSION SYSROOT: what rustc said of itself in this folder.
check_rust() {
    local have=${1#rustc } sysroot=$2 wanted name components=()
    pinned_rust && wanted=$REPLY
    have=${have%% *}
    local install="rustup toolchain install $wanted --component rustfmt,clippy"
    if ! there cargo || ! there rustc; then
        faults+=("cargo and rustc: Rust $wanted compiles gatehouse and its tests")
        cures+=("Rust: rustup of https://rustup.rs, then $install")
        return
    fi
    if [[ -z $have ]]; then
        faults+=("Rust $wanted: rustup does not have it, and rust-toolchain.toml asks for it")
        elsewhere "$wanted" && cures+=("Rust: export RUSTUP_TOOLCHAIN=$REPLY, which is $wanted by another name") || cures+=("Rust: $install")
        return
    fi
    if older "$have" "$wanted"; then
        faults+=("Rust $wanted: this is $have, which lacks what gatehouse is written with")
    elif asked check && [[ $have != "$wanted" ]]; then
        faults+=("Rust $wanted: this is $have, and each version has lints of its own, all of which are errors here")
    fi
    if asked release && for_arm64_elsewhere && [[ -z ${CARGO:-} && ! -d $sysroot/lib/rustlib/aarch64-unknown-linux-gnu ]]; then
        faults+=("Rust's library for arm64: the program for arm64 is compiled with it")
        cures+=("Rust: rustup target add aarch64-unknown-linux-gnu")
    fi
    [[ $have == "$wanted" ]] || cures+=("Rust: $install, or your distribution's package of it")
    if asked check; then
        for name in rustfmt clippy; do
            [[ -x $sysroot/bin/cargo-${name#rust} ]] || components+=("$name")
        done
        if ((${#components[@]})); then
            faults+=("${components[*]}: the format and the lints are checked with them")
            cures+=("Rust: rustup component add ${components[*]}, or your distribution's packages of them")
        fi
    fi
}

# The name by which rustup has this version all the same.
elsewhere() {
    local name rest
    there rustup || return 1
    while read -r name rest; do
        if [[ $(RUSTUP_TOOLCHAIN=$name rustc -V 2>/dev/null) == "rustc $1 "* ]]; then REPLY=$name; return; fi
    done < <(rustup toolchain list 2>/dev/null)
    return 1
}

# ---- Go and what is built with it ----

check_parts() {
    local word family parts seconds=0 names=() line newest=0
    for word; do want_word "$word" >/dev/null; done
    for family in "${wanted_families[@]}"; do
        unbuilt "$family"
        [[ -n $REPLY ]] || continue
        while read -r parts; do seconds=$((seconds + ${parts##* })); done <<<"$REPLY"
        version_of "$family"
        names+=("${family%%-*} $REPLY")
    done
    ((${#names[@]})) || return 0
    duration "$seconds"
    printf -v names '%s, ' "${names[@]}"
    notes+=("built first, from Go modules: ${names%, } (up to $REPLY once, on two cores)")
    while read -r word line; do
        if older "$newest" "$line"; then newest=$line; fi
    done < <(grep -h '^go ' "$tools"/*/go.mod)
    go_version
    if [[ -z $REPLY ]]; then
        faults+=("go: Go $newest or newer builds what the tests run on, from pinned modules")
    elif older "${REPLY#go}" "$newest"; then
        faults+=("Go $newest or newer: this is ${REPLY#go}; it builds what the tests run on, from pinned modules")
    else
        return 0
    fi
    cures+=("Go: https://go.dev/dl, with its bin folder on PATH")
}

check_cargo_deny() {
    local version
    there sed || return 0
    version=$(sed -n 's/^CARGO_DENY_VERSION := //p' "$root/Makefile")
    [[ -x ${CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gatehouse}/cargo-deny-$version/bin/cargo-deny ]] || notes+=("built first: cargo-deny $version (about a minute once)")
}

check_rust_built() {
    local seconds=0
    if [[ ! -d $target/debug/deps ]]; then
        if asked test e2e; then seconds=300; else seconds=180; fi
    fi
    if asked e2e && [[ ! -d $target/$HOSTTYPE-unknown-linux-gnu/quick/deps ]]; then seconds=$((seconds + 400)); fi
    ((seconds)) || return 0
    duration "$seconds"
    notes+=("compiled first, with Cargo: gatehouse and its dependencies (about $REPLY once, on two cores)")
}

# ---- room ----

check_disk() {
    local folder need=$DISK_FIRST disk blocks used free rest seen=' '
    if [[ -d $target/debug/deps && -d $cache ]]; then need=$DISK_LATER; fi
    for folder in "$cache" "$target"; do
        while [[ ! -d $folder ]]; do folder=${folder%/*}; folder=${folder:-/}; done
        { read -r rest && read -r disk blocks used free rest; } < <(df -Pk -- "$folder")
        [[ $seen != *" $disk "* ]] || continue
        seen+="$disk "
        ((free >= need * GIGABYTE)) ||
            faults+=("room on the disk: $((free / GIGABYTE)) GB are free at $folder, $need GB are wanted")
    done
}

check_memory() {
    local name kilobytes rest limit=/sys/fs/cgroup/memory.max
    while read -r name kilobytes rest; do
        [[ $name != MemTotal: ]] || break
    done </proc/meminfo
    if [[ -r $limit && $(<"$limit") =~ ^[0-9]+$ ]] && ((BASH_REMATCH[0] / 1000 < kilobytes)); then
        kilobytes=$((BASH_REMATCH[0] / 1000))
    fi
    # What the kernel keeps for itself is not counted.
    ((kilobytes >= MEMORY * GIGABYTE * 9 / 10)) ||
        faults+=("memory: there are $((kilobytes / GIGABYTE)) GB, $MEMORY GB are wanted: several programs are compiled and linked at a time")
}

# ---- the answer ----

tell() {
    local note
    for note in "${notes[@]}"; do say "$note"; done
    ((${#faults[@]})) || return 0
    printf 'missing: %s\n' "${faults[@]}" >&2
    ((${#packages[@]} == 0)) || printf 'to install: apt-get install --no-install-recommends %s\n' "${packages[*]}" >&2
    ((${#cures[@]} == 0)) || printf 'to install: %s\n' "${cures[@]}" >&2
    work=${work# }
    fail "this machine lacks ${#faults[@]} of what is needed to: ${work% }"
}

main() {
    local word version='' sysroot='' go=''
    case ${1:-} in
    -h | --help)
        usage "${BASH_SOURCE[0]}"
        return
        ;;
    '') set -- check test up e2e ;;
    esac
    for word; do
        [[ $word =~ ^(check|test|up|e2e|release)$ ]] || fail "unknown: $word; there is: check test up e2e release"
    done
    work=" $* "
    # Side by side: rustup takes longer to find the compiler than all the rest does.
    exec 3< <(cd -- "$root" && RUSTUP_AUTO_INSTALL=0 rustc -V 2>/dev/null) \
        4< <(cd -- "$root" && RUSTUP_AUTO_INSTALL=0 rustc --print sysroot 2>/dev/null)
    check_programs
    asked test && check_databases
    asked e2e && check_node
    there df && check_disk
    check_memory
    asked check && check_cargo_deny
    set --
    asked up && set -- "$DEFAULT_KUBERNETES"
    asked test && set -- "$@" all deploy release
    asked e2e && set -- "$@" node images deploy
    asked release && set -- "$@" release
    if (($#)) && there sha256sum && there grep; then check_parts "$@"; fi
    check_rust_built
    read -r version <&3 || true
    read -r sysroot <&4 || true
    check_rust "$version" "$sysroot"
    tell
}

main "$@"
