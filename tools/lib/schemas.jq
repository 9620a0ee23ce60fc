# From Kubernetes' OpenAPI document (api/openapi-spec/swagger.json) to JSON schemas for kubeconform: one line for each
# file, its name and its content with a tab between. Strict: a field that no definition knows is an error, and so is a
# null, which in a rendered manifest is a value that a template left out.

# Annotations for people and code generators say nothing about what is valid.
def schema:
  if .format == "int-or-string" then { type: ["integer", "string"] }
  else
    { "$ref", type, format, required, enum, properties, items, additionalProperties }
    | del(.[] | nulls)
    | if .properties then .properties |= map_values(schema) | .additionalProperties //= false else . end
    | if .items then .items |= schema else . end
    | if .additionalProperties | type == "object" then .additionalProperties |= schema else . end
  end;

def line($name; $content): "\($name)\t\($content | tojson)";

.definitions
| line("_definitions.json";
    { definitions: (
        map_values(schema)
        # The API server takes `cpu: 1` as it takes `cpu: "1"`.
        | .["io.k8s.apimachinery.pkg.api.resource.Quantity"] = { type: ["number", "string"] }
    ) }),
  # The names that kubeconform asks for: kind, the first word of the group, version. What many groups share
  # (DeleteOptions, WatchEvent) is not an object of its own.
  ( to_entries[]
    | select(.value["x-kubernetes-group-version-kind"] | length == 1)
    | .key as $definition
    | .value["x-kubernetes-group-version-kind"][0]
    | [.kind, (.group | split(".")[0]), .version] | map(select(. != null and . != "")) | join("-") | ascii_downcase
    | line("\(.).json"; { "$ref": "_definitions.json#/definitions/\($definition)" }) )
