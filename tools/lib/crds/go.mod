// Other projects' kinds that deploy/ has objects of: their CRDs are read for schemas and nothing is built, so that there
// is nothing for `go mod tidy` to find here. `go mod download` writes go.sum.
module gatehouse/tools/crds

go 1.26.0

require (
	github.com/cert-manager/cert-manager v1.21.2
	github.com/prometheus-operator/prometheus-operator v0.85.0
)
