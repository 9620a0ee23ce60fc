# Sourced by build.sh: builds one binary of a pinned Go module, unless it is there already.
# shellcheck shell=bash

readonly PROGRESS_SECONDS=30

compiler=   # process id of the running go build
unfinished= # file that it writes
scratch=    # folder that it works in

cleanup() {
    if [[ -n $compiler ]] && kill "$compiler" 2>/dev/null; then wait "$compiler" || true; fi
    if [[ -n $unfinished ]]; then rm -f -- "$unfinished"; fi
    if [[ -n $scratch ]]; then rm -rf -- "$scratch"; fi
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

need_go() {
    local family=$1 wanted have
    wanted=$(awk '$1 == "go" { print $2; exit }' "$tools/$family/go.mod")
    command -v go >/dev/null ||
        fail "go is not installed; install Go $wanted or newer (https://go.dev/dl) and put its bin folder on PATH"
    # An older go may fetch the toolchain it lacks; then this answers with that one.
    have=$(cd "$tools/$family" && go env GOVERSION 2>/dev/null) ||
        have=$(cd / && GOTOOLCHAIN=local go env GOVERSION 2>/dev/null) || have=
    have=${have#go}
    have=${have%% *}
    [[ $(printf '%s\n%s\n' "$wanted" "${have:-0}" | sort -V | head -n1) == "$wanted" ]] ||
        fail "tools/$family needs Go $wanted or newer, this is ${have:-an unknown version}; install a newer Go (https://go.dev/dl)"
}

# The checksum of all that decides what a binary is.
recipe() {
    local family=$1 package=$2 ldflags=$3
    {
        cat -- "$tools/$family/go.mod" "$tools/$family/go.sum"
        printf '%s\n' "$package" "$ldflags" CGO_ENABLED=0 -trimpath
    } | sha256sum | cut -d' ' -f1
}

built() {
    local bin=$1 name=$2 sum=$3 stamp
    stamp=${bin%/bin}/stamps/$name
    [[ -x $bin/$name && -f $stamp && $(<"$stamp") == "$sum" ]]
}

# compile FAMILY PACKAGE LDFLAGS BIN NAME WHAT HOW_LONG
compile() {
    local family=$1 package=$2 ldflags=$3 bin=$4 name=$5 what=$6 how_long=$7 sum start next
    sum=$(recipe "$family" "$package" "$ldflags")
    if built "$bin" "$name" "$sum"; then
        say "$what is built already"
        return
    fi
    need_go "$family"
    lock
    if built "$bin" "$name" "$sum"; then # by the run that held the lock
        say "$what was built meanwhile"
        return
    fi
    mkdir -p -- "$bin" "${bin%/bin}/stamps"
    unfinished=$bin/.$name.$$
    say "$what: building (cold: $how_long on two cores)"
    start=$SECONDS
    next=$PROGRESS_SECONDS
    scratch=$(mktemp -d)
    (
        cd "$tools/$family"
        export GOWORK=off CGO_ENABLED=0 GOTMPDIR=$scratch
        exec go build -trimpath -ldflags "$ldflags" -o "$unfinished" "$package"
    ) 9>&- &
    compiler=$!
    while kill -0 "$compiler" 2>/dev/null; do
        sleep 1
        if ((SECONDS - start >= next)); then
            say "$what: $((SECONDS - start)) s"
            next=$((next + PROGRESS_SECONDS))
        fi
    done
    wait "$compiler" || { compiler= && fail "$what did not build; the compiler's words are above"; }
    compiler=
    mv -f -- "$unfinished" "$bin/$name"
    unfinished=
    rm -rf -- "$scratch"
    scratch=
    printf '%s\n' "$sum" >"${bin%/bin}/stamps/.$name.$$"
    mv -f -- "${bin%/bin}/stamps/.$name.$$" "${bin%/bin}/stamps/$name"
    say "$what: built in $((SECONDS - start)) s"
}
