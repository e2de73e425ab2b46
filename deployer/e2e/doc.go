// Package e2e holds what is tested on a real cluster.
package e2e
