# Sourced by build.sh: the JSON schemas that kubeconform judges manifests by, so that nothing is downloaded when it runs:
# of the pinned Kubernetes' kinds, from its OpenAPI document, and of those of the projects in crds/, from their CRDs.
# shellcheck shell=bash

# The folder of a module's sources, downloaded if need be.
sources_of() {
    local family=$1 module=$2 version folder
    version=$(pinned "$family" "$module")
    folder=$(cd "$tools/$family" && pin_go && go mod download -json "$module@v$version" | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')
    [[ -d $folder ]] || fail "unable to get the sources of $module that tools/$family pins"
    printf '%s' "$folder"
}

# The files to make, one a line: name, tab, content.
schema_lines() {
    local family=$1 gojq kubernetes certificates monitoring
    bin_of gojq && gojq=$REPLY/gojq
    kubernetes=$(sources_of "$family" k8s.io/kubernetes)
    certificates=$(sources_of lib/crds github.com/cert-manager/cert-manager)
    monitoring=$(sources_of lib/crds github.com/prometheus-operator/prometheus-operator)
    "$gojq" -r -f "$tools/lib/schemas.jq" "$kubernetes/api/openapi-spec/swagger.json"
    "$gojq" -r -f "$tools/lib/schemas.jq" --yaml-input \
        "$certificates"/deploy/crds/*.yaml "$monitoring"/example/prometheus-operator-crd/*.yaml
}

# Needs gojq to have been built.
build_schemas() {
    local folder version sum name content family=kubernetes-$DEFAULT_KUBERNETES
    version_of "$family" && version=$REPLY
    schemas_folder && folder=$REPLY
    sum=$(cat -- "$tools"/lib/schemas.{jq,sh} "$tools/$family/go.mod" "$tools/lib/crds/go.mod" | sha256sum | cut -d' ' -f1)
    if [[ -f $folder/.stamp && $(<"$folder/.stamp") == "$sum" ]]; then
        say "schemas of Kubernetes $version are there already"
        return
    fi
    need_go "$family"
    lock
    scratch=$(mktemp -d -- "$cache/.schemas.XXXXXX")
    schema_lines "$family" >"$scratch/.lines"
    while IFS=$'\t' read -r name content; do
        printf '%s\n' "$content" >"$scratch/$name"
    done <"$scratch/.lines"
    for name in deployment-apps-v1 certificate-cert-manager-v1 servicemonitor-monitoring-v1; do
        [[ -s $scratch/$name.json ]] || fail "no schema $name came out of the sources of the pinned modules"
    done
    rm -- "$scratch/.lines"
    printf '%s\n' "$sum" >"$scratch/.stamp"
    chmod 755 "$scratch"
    rm -rf -- "$folder"
    mv -- "$scratch" "$folder"
    scratch=
    say "schemas of Kubernetes $version: made"
}
