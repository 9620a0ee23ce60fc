# Sourced by build.sh: the JSON schemas that kubeconform judges manifests by, from the OpenAPI document of the pinned
# Kubernetes, so that nothing is downloaded when it runs.
# shellcheck shell=bash

schemas_folder() {
    local version
    version=$(version_of "kubernetes-$DEFAULT_KUBERNETES")
    printf '%s/kubeconform-schemas-%s' "$cache" "$version"
}

# The folder of a module's sources, downloaded if need be.
sources_of() {
    local family=$1 module=$2 folder
    folder=$(cd "$tools/$family" && GOWORK=off go mod download -json "$module" | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')
    [[ -d $folder ]] || fail "unable to get the sources of $module that tools/$family pins"
    printf '%s' "$folder"
}

# Needs gojq to have been built.
build_schemas() {
    local folder version sum fresh sources gojq name content
    local family=kubernetes-$DEFAULT_KUBERNETES
    version=$(version_of "$family")
    folder=$(schemas_folder)
    gojq=$(bin_of gojq)/gojq
    sum=$(cat -- "$tools/lib/schemas.jq" "$tools/lib/schemas.sh" "$tools/$family/go.mod" | sha256sum | cut -d' ' -f1)
    if [[ -f $folder/.stamp && $(<"$folder/.stamp") == "$sum" ]]; then
        say "schemas of Kubernetes $version are there already"
        return
    fi
    need_go "$family"
    lock
    sources=$(sources_of "$family" k8s.io/kubernetes)
    mkdir -p -- "$cache"
    fresh=$(mktemp -d -- "$cache/.schemas.XXXXXX")
    scratch=$fresh
    "$gojq" -r -f "$tools/lib/schemas.jq" "$sources/api/openapi-spec/swagger.json" >"$fresh/.lines"
    while IFS=$'\t' read -r name content; do
        printf '%s\n' "$content" >"$fresh/$name"
    done <"$fresh/.lines"
    [[ -f $fresh/deployment-apps-v1.json ]] || fail "no schema for Deployments came out of $sources/api/openapi-spec"
    rm -- "$fresh/.lines"
    printf '%s\n' "$sum" >"$fresh/.stamp"
    chmod 755 "$fresh"
    rm -rf -- "$folder"
    mv -- "$fresh" "$folder"
    scratch=
    say "schemas of Kubernetes $version: made"
}
