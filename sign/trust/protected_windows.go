package trust

import "io/fs"

// checkProtected accepts every file: the permission bits that Go reports on Windows do not show which users can write.
func checkProtected(fs.FileInfo) error { return nil }
