//go:build !unix

package authority

import "os"

// checkPrivate checks nothing: file modes do not control access on this system.
func checkPrivate(string) error { return nil }

func giveToOwner(*os.File, string) error { return nil }

func isReadOnly(error) bool { return false }
