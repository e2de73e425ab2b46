// Package prometheus is the module of Prometheus, whose dependencies are its own. 'go build' makes the program from the directive of
// go.mod; there is nothing else here.
package prometheus
