# Sourced by build.sh: builds binaries of pinned Go modules, unless they are there already.
# shellcheck shell=bash

readonly PROGRESS_SECONDS=30
# So many families are built side by side: one alone leaves cores idle while its packages wait for one another. The
# first is built alone, so that Go's own library is compiled once.
readonly LANES=2

begun=()  # process ids of what runs beside this process: the builds of families, or the go build of one
scratch=  # folder that is worked in

cleanup() {
    local id
    for id in "${begun[@]}"; do
        if kill "$id" 2>/dev/null; then wait "$id" || true; fi
    done
    if [[ -n $scratch ]]; then rm -rf -- "$scratch"; fi
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# What the environment could change about a build stands still. An older Go fetches no other unless it is asked to.
pin_go() {
    export GOWORK=off CGO_ENABLED=0 GOFLAGS=-buildvcs=false GOEXPERIMENT='' GOAMD64=v1 GOARM64=v8.0 GOOS='' GOARCH=''
    export GOTOOLCHAIN=${GOTOOLCHAIN:-local}
}

need_go() {
    local family=$1 wanted have
    wanted=$(awk '$1 == "go" { print $2; exit }' "$tools/$family/go.mod")
    command -v go >/dev/null ||
        fail "go is not installed; install Go $wanted or newer (https://go.dev/dl) and put its bin folder on PATH"
    go_version
    have=${REPLY#go}
    have=${have%%,*}
    [[ $(printf '%s\n%s\n' "$wanted" "${have:-0}" | sort -V | head -n1) == "$wanted" ]] ||
        fail "tools/$family needs Go $wanted or newer, this is ${have:-an unknown version}; install a newer Go" \
            "(https://go.dev/dl), or have this one fetch it: GOTOOLCHAIN=go$wanted"
}

# What go build calls the program of a package.
program_of() {
    local family=$1 package=$2
    [[ $package != . ]] || package=$family
    [[ ! ${package##*/} =~ ^v[0-9]+$ ]] || package=${package%/*}
    REPLY=${package##*/}
}

# build_family FAMILY PART...: the parts are lines of parts_of. One call builds all, so that they are linked side by side.
# Wants a process of its own.
build_family() {
    local family=$1 part name package seconds names='' cold=0 packages=() version bin ldflags start=$SECONDS next
    shift
    begun=()
    trap cleanup EXIT
    trap 'exit 143' TERM HUP
    version_of "$family" && version=$REPLY
    bin_of "$family" && bin=$REPLY
    ldflags_of "$family" && ldflags=$REPLY
    for part; do
        read -r name package seconds <<<"$part"
        names+="$name " packages+=("$package") cold=$((cold + seconds))
    done
    names+=$version
    need_go "$family"
    mkdir -p -- "$bin" "${bin%/bin}/stamps"
    duration "$cold"
    say "$names: building (cold: about $REPLY on two cores)"
    scratch=$(mktemp -d -- "$cache/.building.XXXXXX")
    mkdir -- "$scratch/tmp"
    (
        cd "$tools/$family"
        pin_go
        export GOTMPDIR=$scratch/tmp
        exec go build -trimpath -ldflags "$ldflags" -o "$scratch/" "${packages[@]}"
    ) 9>&- &
    begun=($!)
    next=$((start + PROGRESS_SECONDS))
    while kill -0 "${begun[0]}" 2>/dev/null; do
        sleep 1
        if ((SECONDS >= next)); then
            say "$names: $((SECONDS - start)) s"
            next=$((next + PROGRESS_SECONDS))
        fi
    done
    wait "${begun[0]}" || fail "$names did not build; the compiler's words are above"
    begun=()
    for part; do
        read -r name package seconds <<<"$part"
        program_of "$family" "$package"
        mv -f -- "$scratch/$REPLY" "$bin/$name"
        stamp "$family" "$package" >"$scratch/stamp"
        mv -f -- "$scratch/stamp" "${bin%/bin}/stamps/$name"
    done
    say "$names: built in $((SECONDS - start)) s"
}

stamp() {
    local go
    go_version && go=$REPLY
    recipe_of "$1" "$2"
    say "$go $REPLY"
}

# Builds what is wanted and not there.
build_wanted() {
    local family parts running=0 lanes=1
    for family in "${wanted_families[@]}"; do
        unbuilt "$family"
        if [[ -n $REPLY ]]; then
            lock
            unbuilt "$family" # by the run that held the lock, perhaps
        fi
        if [[ -z $REPLY ]]; then
            version_of "$family"
            say "${family%%-*} $REPLY is built already"
            continue
        fi
        mapfile -t parts <<<"$REPLY"
        if ((running == lanes)); then
            wait -n || exit 1
            running=$((running - 1)) lanes=$LANES
        fi
        build_family "$family" "${parts[@]}" &
        begun+=($!)
        running=$((running + 1))
    done
    while ((running--)); do wait -n || exit 1; done
}
