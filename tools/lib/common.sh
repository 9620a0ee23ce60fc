# Sourced by the scripts of this folder: what they all say, where things are, and what is pinned.
# shellcheck shell=bash
shopt -s inherit_errexit # what fails inside $(…) fails

tools=$(cd -- "${BASH_SOURCE[0]%/*}/.." && pwd)
cache=${GATEHOUSE_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/gatehouse/tools}
readonly tools cache

say() { printf '%s\n' "$*"; }
fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# Seconds as people say them, in REPLY.
duration() {
    if (($1 < 55)); then REPLY="$1 seconds"; else REPLY="$((($1 + 30) / 60)) minutes"; fi
    [[ $REPLY != '1 minutes' ]] || REPLY='a minute'
}

# Prints the comment at the head of a script.
usage() { sed -n '/^#!/d;/^#/!q;s/^# \{0,1\}//;p' "$1"; }

# The version that FAMILY's go.mod requires of MODULE, without the v.
pinned() {
    local family=$1 module=$2 version
    version=$(awk -v module="$module" '
        $1 == "require" && $2 == module { print $3; exit }
        $1 == module && $2 ~ /^v/ { print $2; exit }' "$tools/$family/go.mod")
    [[ -n $version ]] || fail "tools/$family/go.mod does not require $module"
    printf '%s' "${version#v}"
}

locked=
# One build at a time; held until the script ends.
lock() {
    [[ -z $locked ]] || return 0
    mkdir -p -- "$cache"
    exec 9>"$cache/.lock"
    if ! flock -n 9; then
        say "another build is running; waiting for it"
        flock 9
    fi
    rm -rf -- "$cache"/.building.* # of a build that was killed
    locked=yes
}
