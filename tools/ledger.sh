#!/usr/bin/env bash
# The ledger of the long checks, tests/ledger.ndjson: a line for each run of a part of `make nightly`.
#
#   tools/ledger.sh add PART SEED SECONDS RESULT [FIGURE...]   appends a line about the commit that is checked out
#   tools/ledger.sh ages                                       how many commits ago each part was last run, and how it ended
#
# A part that is older than 20 commits, or that has never run, is warned of.
set -euo pipefail

# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
cd -- "$tools/.."

readonly LEDGER=tests/ledger.ndjson OLDEST=20

# A text as a JSON string.
json() {
    local text=${1//\\/\\\\}
    printf '"%s"' "${text//\"/\\\"}"
}

add() {
    local part=$1 seed=$2 seconds=$3 result=$4 figure figures='' commit dirty=false
    shift 4
    commit=$(git rev-parse HEAD)
    git diff --quiet HEAD -- . ":!$LEDGER" || dirty=true
    for figure in "$@"; do figures+=${figures:+,}$(json "$figure"); done
    printf '{"commit":"%s","changed":%s,"time":"%s","part":%s,"seed":%s,"seconds":%s,"result":"%s","figures":[%s]}\n' \
        "$commit" "$dirty" "$(date -u +%FT%TZ)" "$(json "$part")" "$seed" "$seconds" "$result" "$figures" >>"$LEDGER"
}

field() { sed -n "s/.*\"$1\":\"\\{0,1\\}\\([^\",]*\\).*/\\1/p" <<<"$2"; }

ages() {
    local part line commit age
    for part in $(tools/nightly.sh --list); do
        line=$(grep -F "\"part\":\"$part\"" "$LEDGER" 2>/dev/null | tail -n 1 || true)
        if [[ -z $line ]]; then
            printf '%-12s never run: make nightly PART=%s\n' "$part" "$part"
            continue
        fi
        commit=$(field commit "$line")
        age=$(git rev-list --count "$commit..HEAD" 2>/dev/null) || age='unknown'
        printf '%-12s %s commits ago: %s after %s s%s\n' "$part" "$age" "$(field result "$line")" "$(field seconds "$line")" \
            "$( [[ $age != unknown ]] && ((age <= OLDEST)) || printf '  OLD: make nightly PART=%s' "$part")"
    done
}

case ${1:-} in
add) shift && add "$@" ;;
ages) ages ;;
-h | --help) usage "${BASH_SOURCE[0]}" ;;
*) fail "add or ages is wanted; see $0 --help" ;;
esac
