package store

import "os"

func allowGroup(string) error { return nil }

func keepOwner(*os.File, os.FileInfo) error { return nil }
