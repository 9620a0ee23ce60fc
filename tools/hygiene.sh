#!/usr/bin/env bash
# Looks for what does not belong in the repository: binaries and profiles, large files, scripts that bash cannot read,
# lines that end in CRLF, a last line that does not end.
#
#   tools/hygiene.sh [FOLDER]
#
# Looks at the files that git tracks in FOLDER, the root of the repository unless one is given, and at those that it
# would add. Names each fault and fails if there is one.
set -euo pipefail

# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
export LC_ALL=C

readonly LARGEST=$((200 << 10)) # bytes

# What may be larger.
may_be_large() {
    case $1 in
    Cargo.lock | */Cargo.lock | */go.sum) ;;
    # Generated from the types: the description of every field is in there.
    deploy/crds/*.yaml | deploy/chart/gatehouse/files/*.yaml) ;;
    # What an operator told of a real cluster from its first pass to its last.
    tests/traces/*.ndjson) ;;
    *) return 1 ;;
    esac
}

files=()
# search OPTION... : those of the files for which grep says so, one a line. None is no failure.
search() { printf '%s\0' "${files[@]}" | xargs -0 grep "$@" -- || true; }

faults=0
# Says of each file that is read what is wrong with it.
tell() {
    local file
    while IFS= read -r file; do
        printf '%s: %s\n' "$file" "$1" >&2
        faults=$((faults + 1))
    done
}

# Takes the files that are listed out of those that are looked at further.
leave_out() {
    local file
    local -A left=()
    while IFS= read -r file; do left[$file]=; done
    for file in "${!files[@]}"; do
        if [[ -v left[${files[file]}] ]]; then unset "files[file]"; fi
    done
}

filled() {
    local file
    while IFS= read -r file; do
        if [[ -s $file ]]; then say "$file"; fi
    done
}

check_content() {
    local binaries
    # For grep a file with zero bytes in it is binary, and an empty one has no line.
    binaries=$({ search -LI '' | filled; printf '%s\n' "${files[@]}" | grep -E '\.(profraw|profdata)$' || true; } | sort -u)
    if [[ -n $binaries ]]; then
        tell 'a binary or a profile; what is built or measured does not belong here' <<<"$binaries"
        leave_out <<<"$binaries"
    fi
    tell 'lines end in CRLF; end them in LF' < <(search -l $'\r$')
    # Each file is one line for grep here, and \z is its end.
    tell 'the last line does not end; add a newline' < <(search -zLP '\n\z' | filled)
}

check_sizes() {
    local size file what="larger than $((LARGEST >> 10)) KiB; make it smaller, or name it in tools/hygiene.sh with a reason"
    while read -r size file; do
        ((size <= LARGEST)) || may_be_large "$file" || tell "$what" <<<"$file"
    done < <(printf '%s\0' "${files[@]}" | xargs -0 stat --format '%s %n' --)
}

check_scripts() {
    local file
    while IFS= read -r file; do
        bash -n -- "$file" || tell 'bash cannot read it' <<<"$file"
    done < <({ printf '%s\n' "${files[@]}" | grep '\.sh$' || true; search -zlP '\A#!.*\b(ba)?sh\b'; } | sort -u)
}

main() {
    local file
    case ${1:-} in
    -h | --help)
        usage "${BASH_SOURCE[0]}"
        return
        ;;
    esac
    cd -- "${1:-$tools/..}"
    while IFS= read -r -d '' file; do
        # What was removed and is not committed yet is no fault.
        if [[ -f $file && ! -L $file ]]; then files+=("$file"); fi
    done < <(git ls-files -z --cached --others --exclude-standard)
    ((${#files[@]})) || fail "git knows no files in $PWD"
    check_sizes
    check_content
    check_scripts
    ((faults == 0)) || fail "faults found: $faults"
    say "${#files[@]} files: no binary, none too large, every script can be read"
}

main "$@"
