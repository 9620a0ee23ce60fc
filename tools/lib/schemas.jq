# JSON schemas for kubeconform, from Kubernetes' OpenAPI document (api/openapi-spec/swagger.json) or from a
# CustomResourceDefinition: one line for each file, its name and its content with a tab between. Strict: a field that no
# schema knows is an error, and so is a null, which in a rendered manifest is a value that a template left out.

# Annotations for people and code generators say nothing about what is valid.
def keywords:
  with_entries(select(.key | startswith("x-") or IN("description", "default", "example", "externalDocs", "nullable") | not));

def schema:
  if .format == "int-or-string" then { type: ["integer", "string"] }
  else
    .["x-kubernetes-preserve-unknown-fields"] as $open
    | keywords
    | if .properties then
        .properties |= map_values(schema)
        | if $open then . else .additionalProperties //= false end
      else . end
    | if .items then .items |= schema else . end
    | if .additionalProperties | type == "object" then .additionalProperties |= schema else . end
  end;

def line($name; $content): "\($name)\t\($content | tojson)";
def reference($definition): { "$ref": "_definitions.json#/definitions/\($definition)" };

# What kubeconform asks for: kind, the first word of the group, version.
def file($kind; $group; $version):
  [$kind, ($group | split(".")[0]), $version] | map(select(. != null and . != "")) | join("-") | ascii_downcase + ".json";

if .kind == "CustomResourceDefinition" then
  .spec
  | .names.kind as $kind
  | .group as $group
  | .versions[]
  | line(file($kind; $group; .name);
      .schema.openAPIV3Schema
      | schema
      | .properties.metadata = reference("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"))
else
  .definitions
  | line("_definitions.json";
      { definitions: (
          map_values(schema)
          # The API server takes `cpu: 1` as it takes `cpu: "1"`.
          | .["io.k8s.apimachinery.pkg.api.resource.Quantity"] = { type: ["number", "string"] }
      ) }),
    # What many groups share (DeleteOptions, WatchEvent) is not an object of its own.
    ( to_entries[]
      | select(.value["x-kubernetes-group-version-kind"] | length == 1)
      | .key as $definition
      | .value["x-kubernetes-group-version-kind"][0]
      | line(file(.kind; .group; .version); reference($definition)) )
end
