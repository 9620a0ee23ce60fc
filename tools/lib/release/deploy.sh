# Sourced by release.sh: the chart, install.yaml and the manifest for krew, with the image and the sums of this release.
# shellcheck shell=bash

# The annotations that Artifact Hub reads.
annotate_chart() {
    local crds examples
    crds=$(run gojq --yaml-input --slurp --compact-output 'map(.spec.names.kind as $kind | {
        kind: $kind, version: "v1", name: .metadata.name, displayName: $kind,
        description: ((.spec.versions[] | select(.name == "v1").schema.openAPIV3Schema.description) // $kind)
    })' deploy/crds/{databasemigrations,etcdclusters,tdsets}.yaml)
    examples=$(run gojq --yaml-input --slurp --compact-output . \
        examples/{databasemigration,etcdcluster}/minimal.yaml examples/tdset/office-hours.yaml)
    run gojq --yaml-input --yaml-output --arg crds "$crds" --arg examples "$examples" \
        --arg image "$registry/gatehouse@$image_digest" --arg architectures "${architectures[*]}" '
        (.version | test("-") | tostring) as $prerelease | .annotations = {
            "artifacthub.io/category": "database",
            "artifacthub.io/crds": $crds,
            "artifacthub.io/crdsExamples": $examples,
            "artifacthub.io/images": ([{
                name: "gatehouse", image: $image, platforms: ($architectures / " " | map("linux/" + .))
            }] | tojson),
            "artifacthub.io/license": "Apache-2.0",
            "artifacthub.io/operator": "true",
            "artifacthub.io/prerelease": $prerelease
        }' deploy/chart/gatehouse/Chart.yaml
}

# replace_once FILE PATTERN LINE: puts LINE in the place of the only line that is like PATTERN.
replace_once() {
    local file=$1 pattern=$2 line=$3
    [[ $(grep -c -- "$pattern" "$file") == 1 ]] || fail "$file: not one line is like $pattern"
    sed -i "s|$pattern|$line|" "$file"
}

# helm's own archives hold the time at which they were made.
pack_chart() {
    local folder=$scratch/chart
    mkdir -p -- "$folder"
    cp -r -- deploy/chart/gatehouse "$folder/"
    annotate_chart >"$scratch/Chart.yaml"
    mv -- "$scratch/Chart.yaml" "$folder/gatehouse/Chart.yaml"
    replace_once "$folder/gatehouse/values.yaml" '^  repository: .*' "  repository: $registry/gatehouse"
    replace_once "$folder/gatehouse/values.yaml" '^  digest: ""' "  digest: $image_digest"
    find "$folder" -type d -exec chmod 755 {} + -o -type f -exec chmod 644 {} +
    run helm lint --quiet --strict "$folder/gatehouse" || fail "helm finds faults in the chart"
    tarball "$folder" "$SOURCE_DATE_EPOCH" | gzip -n >"$files/gatehouse-$version.tgz"
}

# deploy/base with the image of this release, also for the Jobs and guards.
pack_manifests() {
    local folder=$scratch/install
    mkdir -p -- "$folder"
    cp -r -- deploy "$folder/"
    cat >"$folder/kustomization.yaml" <<YAML
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [deploy/base]
images:
- name: gatehouse.dev/gatehouse
  newName: $registry/gatehouse
  digest: $image_digest
replacements:
- source:
    kind: Deployment
    name: gatehouse
    fieldPath: spec.template.spec.containers.[name=gatehouse].image
  targets:
  - select:
      kind: Deployment
      name: gatehouse
    fieldPaths:
    - spec.template.spec.containers.[name=gatehouse].env.[name=GATEHOUSE_IMAGE].value
YAML
    run kustomize build "$folder" >"$files/install.yaml"
    ! grep -q 'gatehouse.dev/gatehouse:' "$files/install.yaml" || fail "install.yaml names an image that is not of this release"
}

pack_krew() {
    local architecture archive
    if [[ -z ${DOWNLOADS:-} ]]; then
        say "DOWNLOADS is not set: there is no manifest for krew"
        return
    fi
    {
        cat <<YAML
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: gatehouse
spec:
  version: v$version
  shortDescription: Work with EtcdCluster, TDSet and DatabaseMigration
  description: |
    The command line of gatehouse: it validates and converts manifests, and previews what gatehouse does with them.
  platforms:
YAML
        for architecture in "${architectures[@]}"; do
            archive=$(archive_of "$architecture")
            cat <<YAML
  - selector:
      matchLabels:
        os: linux
        arch: $architecture
    uri: ${DOWNLOADS%/}/${archive##*/}
    sha256: $(digest "$archive")
    bin: gatehouse
YAML
        done
    } >"$files/krew.yaml"
}
