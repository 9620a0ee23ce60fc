# Sourced by the scripts that run tests: builds all test programs in one call, and runs one of them by its name.
# shellcheck shell=bash

# Where the test programs are listed: beside them, wherever cargo builds by now.
programs() { printf '%s\n' "${CARGO_TARGET_DIR:-$tools/../target}/test-programs.tsv"; }

# Test programs that have a harness of their own, which says itself what each test took.
readonly OWN_HARNESS=' api certificates control_plane e2e etcd guard migrate node '

# Writes down where each test program is: name, tab, folder of its package, tab, path. A library's tests are called by
# the library's name.
build_tests() {
    local messages
    messages=$(mktemp)
    cargo test --workspace --no-run --message-format json-render-diagnostics "$@" --lib --tests >"$messages"
    # `cargo test` passes these by, and takes them with nothing beside them alone.
    cargo test --workspace --no-run --message-format json-render-diagnostics "$@" --test e2e --test node >>"$messages"
    sed -n 's/^{"reason":"compiler-artifact".*"manifest_path":"\(.*\)\/Cargo.toml","target":{"kind":\["[a-z]*"\],"crate_types":\["[a-z]*"\],"name":"\([^"]*\)".*"profile":{[^}]*"test":true}.*"executable":"\([^"]*\)".*/\2\t\1\t\3/p' \
        "$messages" >"$(programs)"
    rm -f -- "$messages"
    [[ -s $(programs) ]] || fail "cargo named no test program"
}

# run_tests NAME [ARGUMENT...]
run_tests() {
    local name=$1 folder program
    shift
    IFS=$'\t' read -r _ folder program < <(awk -F'\t' -v name="$name" '$1 == name' "$(programs)") ||
        fail "there is no test program $name; $(programs) has: $(cut -f1 "$(programs)" | paste -sd' ')"
    pass_by "$name"
    say "-- $name"
    if [[ $OWN_HARNESS == *" $name "* ]]; then
        (cd -- "$folder" && exec "$program" "$@")
        return
    fi
    # How long a test took is told by no stable flag.
    (cd -- "$folder" && RUSTC_BOOTSTRAP=1 exec "$program" -Z unstable-options --report-time "$@") | times_of "$name"
}

# pass_by NAME: counts a test program among those that are run, in the file that TESTS_RUN names.
pass_by() { printf '%s\n' "$1" >>"${TESTS_RUN:-/dev/null}"; }

# Every test program was run.
none_is_left_out() {
    local all left
    all=$(cut -f1 "$(programs)" | sort -u)
    [[ -n $all ]] || fail "$(programs) lists no test program"
    left=$(comm -23 <(printf '%s\n' "$all") <(sort -u "$TESTS_RUN") | paste -sd' ')
    [[ -z $left ]] || fail "no stage runs these test programs: $left"
}

# Passes on what libtest prints, and adds the times to the file that TEST_TIMES names.
times_of() {
    awk -v name="$1" -v into="${TEST_TIMES:-/dev/null}" '
        { print; fflush() }
        /^test .* \.\.\. (ok|FAILED) <[0-9.]+s>$/ {
            time = $NF; gsub(/[<>s]/, "", time)
            printf "%s\t%s\t%s::%s\n", time, $(NF - 1), name, $2 >>into
        }'
}
