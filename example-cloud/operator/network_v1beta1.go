//go:build release_1_1_0

package main

// networkVersion is the version in which this release works with Networks.
const networkVersion = "v1beta1"
