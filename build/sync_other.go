//go:build !unix

package build

// syncDirectory has nothing to do: these systems order a rename themselves and cannot sync a directory.
func syncDirectory(string) error { return nil }
