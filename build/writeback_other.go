//go:build !linux

package build

import "os"

// startWriteback leaves the time of writing to the kernel.
func startWriteback(*os.File, int64, int64) {}
