// Package operator is the module of the Prometheus operator, whose dependencies are its own. 'go build' makes its programs from the
// directives of go.mod; there is nothing else here.
package operator
