package sbom

import "sync/atomic"

// limits bound what is read of images. A value of this type counts for one archive; tests use smaller ones.
type limits struct {
	layerBytes   int64 // of an uncompressed layer, and of the content of its files
	layerEntries int   // files, directories, links and whiteouts in a layer
	pathLength   int   // longer paths cannot be unpacked
	pathDepth    int   // directories above a file
	files        int64 // that name packages, in an archive
	memory       int64 // bytes of memory that these files take, about
	entries      int64 // files, directories, links and whiteouts in an archive
	packages     int   // in an archive
	lookups      int   // while layers are merged
	document     int64 // a database or metadata that is read into memory at once, or line by line
	spooled      int64 // a database or jar that is copied to read it at random
	program      int64 // a program that is searched for build information
	jarEntries   int   // files in a jar
	jarInflated  int64 // bytes that are decompressed of a jar
	text         int   // a name, a version, a license
	unread       int   // files in the list of those that were not read
	objects      int   // in a bill of materials that an image brings
	bills        int64 // bytes of these in an archive; one that several images bring is counted for each
}

func standardLimits() limits {
	return limits{
		layerBytes: 64 << 30, layerEntries: 2 << 20, pathLength: 4096, pathDepth: 128,
		files: 200_000, memory: 256 << 20, entries: 32 << 20, packages: 500_000, lookups: 100_000_000,
		document: 32 << 20, spooled: 1 << 30, program: 4 << 30,
		jarEntries: 100_000, jarInflated: 256 << 20, text: 512, unread: 100, objects: 500_000, bills: 512 << 20,
	}
}

// maxPaths is how many files are listed for one package.
const maxPaths = 10

// budget counts what the layers of an archive have taken of its limits.
type budget struct{ files, memory, entries atomic.Int64 }

// take counts a file that names packages, and refuses one too many.
func (b *budget) take(limit *limits, memory int64) error {
	if b.files.Add(1) > limit.files || b.memory.Add(memory) > limit.memory {
		return errLayer
	}
	return nil
}
