package store

import "os"

func openNoFollow(path string) (*os.File, error) { return os.Open(path) }

func allowGroup(string) error { return nil }

func keepOwner(*os.File, os.FileInfo) error { return nil }
