package schema

import (
	"math/bits"
	"slices"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Bounds of a layout. An archive with more files has the smaller ones in its frame.
const (
	MaxSegments   = 1 << 14
	maxFrameBlock = 4 << 20
	minFrameBlock = 64 << 10
	maxFrame      = 1 << 30
)

// ArchiveLayout describes an archive as its blobs, by digest, and its frame: all bytes around them.
type ArchiveLayout struct {
	Name    string `json:"name" schema:"name"`
	Version string `json:"version" schema:"version"`
	Size    int64  `json:"size" schema:"minimum=1"`
	// SHA256 is the digest of the whole archive, in hexadecimal.
	SHA256 string       `json:"sha256" schema:"sha256"`
	Frame  ArchiveFrame `json:"frame"`
	// Segments follow each other from the first byte of the archive to the last.
	Segments []ArchiveSegment `json:"segments" schema:"maxItems=16384"`
}

// ArchiveFrame is the bytes of an archive between its blobs, one after another, cut into blocks that are compressed with zstd.
type ArchiveFrame struct {
	Size      int64 `json:"size" schema:"minimum=0 maximum=1073741824"`
	BlockSize int64 `json:"blockSize" schema:"minimum=65536 maximum=4194304"`
	// Blocks are the compressed sizes of the blocks, in bytes.
	Blocks []int64 `json:"blocks" schema:"maxItems=16384 minimum=1 maximum=8388608"`
}

// ArchiveSegment is a run of bytes of an archive.
type ArchiveSegment struct {
	Size int64 `json:"size" schema:"minimum=1"`
	// SHA256 is the digest of a blob, in hexadecimal, which no other segment has. Without one, the bytes are the next ones of the frame.
	SHA256 string `json:"sha256,omitempty" schema:"sha256"`
}

// ArchiveDelta is the first file of a delta: the layout of the archive that it makes, and the archives that it needs. The other
// files are the signatures, the frame, and the blobs that these archives do not have, or patches that make them.
type ArchiveDelta struct {
	Stamp
	Bases   []DeltaBase   `json:"bases" schema:"maxItems=16"`
	Bundles []DeltaBundle `json:"bundles,omitempty" schema:"maxItems=1000"`
	Layout  ArchiveLayout `json:"layout"`
	// Patches have the order of the blobs that they make. Format 1 has none.
	Patches []DeltaPatch `json:"patches,omitempty" schema:"maxItems=8192"`
}

// DeltaPatch makes a blob, which is a compressed tar file, from one in an archive that the delta needs.
type DeltaPatch struct {
	// SHA256 is the digest of the blob that it makes.
	SHA256 string `json:"sha256" schema:"sha256"`
	// Size is that of the patch.
	Size   int64       `json:"size" schema:"minimum=1"`
	Source DeltaSource `json:"source"`
	// Content is the tar file that the patch makes of the content of the source.
	Content DeltaContent `json:"content"`
	// Codec names the compressor, with its level, that makes the blob of the content.
	Codec string `json:"codec" schema:"pattern=^[0-9a-z-]{1,64}$"`
}

// DeltaSource is a blob that a patch changes, and the size of its content.
type DeltaSource struct {
	SHA256   string `json:"sha256" schema:"sha256"`
	Size     int64  `json:"size" schema:"minimum=1"`
	Unpacked int64  `json:"unpacked" schema:"minimum=1"`
}

// DeltaContent is the content of a compressed blob.
type DeltaContent struct {
	SHA256 string `json:"sha256" schema:"sha256"`
	Size   int64  `json:"size" schema:"minimum=1"`
}

// DeltaBase is an archive that a delta needs.
type DeltaBase struct {
	Name    string `json:"name" schema:"name"`
	Version string `json:"version" schema:"version"`
	SHA256  string `json:"sha256" schema:"sha256"`
	Size    int64  `json:"size" schema:"minimum=1"`
}

// ID is <name>-<version>.
func (b DeltaBase) ID() string { return b.Name + "-" + b.Version }

// DeltaBundle is a signature of the archive that a delta makes.
type DeltaBundle struct {
	// Signer is the part of the file's name that names a further signer, "" for the first one.
	Signer string `json:"signer,omitempty" schema:"pattern=^[0-9A-Za-z_-][0-9A-Za-z._-]{0,63}$"`
	Size   int64  `json:"size" schema:"minimum=1 maximum=8388608"`
}

// ID is <name>-<version>.
func (l *ArchiveLayout) ID() string { return l.Name + "-" + l.Version }

// Validate refuses a layout whose segments are not the whole archive, without adding up to more than it first.
func (l *ArchiveLayout) Validate() error {
	frame, left := l.Frame.Size, l.Size
	seen := map[string]bool{}
	for i, s := range l.Segments {
		switch {
		case s.Size <= 0 || s.Size > left:
			return report.Errorf(report.Invalid, "segments[%d] has %d bytes, %d of the archive are left", i, s.Size, left)
		case s.SHA256 == "" && s.Size > frame:
			return report.Errorf(report.Invalid, "segments[%d] has %d bytes, %d of the frame are left", i, s.Size, frame)
		case s.SHA256 == "":
			frame -= s.Size
		case seen[s.SHA256]:
			return report.Errorf(report.Invalid, "segments[%d] has the digest of an earlier one", i)
		}
		seen[s.SHA256] = s.SHA256 != ""
		left -= s.Size
	}
	if left != 0 || frame != 0 {
		return report.Errorf(report.Invalid, "the segments leave %d bytes of the archive and %d of the frame", left, frame)
	}
	return l.Frame.validate()
}

// validatePatches refuses patches for other blobs than those of the layout, or in another order.
func (d *ArchiveDelta) validatePatches() error {
	if len(d.Patches) > 0 && d.FormatVersion < 2 {
		return report.Errorf(report.Invalid, "format %d has no patches", d.FormatVersion)
	}
	left := d.Layout.Segments
	for i, p := range d.Patches {
		at := slices.IndexFunc(left, func(s ArchiveSegment) bool { return s.SHA256 == p.SHA256 })
		if at < 0 {
			return report.Errorf(report.Invalid, "patches[%d] makes a blob that the layout does not have, or not after the one before", i)
		}
		left = left[at+1:]
	}
	return nil
}

func (f *ArchiveFrame) validate() error {
	if f.BlockSize < minFrameBlock || f.BlockSize > maxFrameBlock || bits.OnesCount64(uint64(f.BlockSize)) != 1 || f.Size < 0 || f.Size > maxFrame {
		return report.Errorf(report.Invalid, "a frame of %d bytes in blocks of %d is not supported", f.Size, f.BlockSize)
	}
	if want := (f.Size + f.BlockSize - 1) / f.BlockSize; int64(len(f.Blocks)) != want {
		return report.Errorf(report.Invalid, "the frame has %d blocks, want %d", len(f.Blocks), want)
	}
	for i, size := range f.Blocks {
		if size <= 0 || size > 2*maxFrameBlock {
			return report.Errorf(report.Invalid, "block %d of the frame has %d bytes", i, size)
		}
	}
	return nil
}

// ArchiveArtifact is the configuration of an archive in a registry: its layout. The layers are the compressed frame and the blobs.
type ArchiveArtifact struct {
	Stamp
	Layout ArchiveLayout `json:"layout"`
}

// NewArchiveArtifact returns the document of a layout. It has the first version that could read it, whichever writes it: an archive has one
// digest in registries.
func NewArchiveArtifact(l ArchiveLayout) ArchiveArtifact {
	return ArchiveArtifact{Stamp: NewStamp("artifact", "0.1.0"), Layout: l}
}

// ParseArchiveArtifact reads the configuration of an archive in a registry.
func ParseArchiveArtifact(data []byte) (*ArchiveArtifact, error) {
	a, err := ParseStored[ArchiveArtifact]("artifact", "the layout of the archive", data)
	if err == nil {
		err = a.Layout.Validate()
	}
	if err != nil && report.CodeOf(err) != report.Refused {
		return nil, report.Errorf(report.CodeOf(err), "%s", err.Error()).WithHint("push the archive again from its source")
	}
	return a, err
}

// ParseArchiveDelta reads the first file of a delta.
func ParseArchiveDelta(data []byte) (*ArchiveDelta, error) {
	d, err := ParseStored[ArchiveDelta]("delta", "delta.json", data)
	if err == nil {
		err = d.Layout.Validate()
	}
	if err == nil {
		err = d.validatePatches()
	}
	if err != nil && report.CodeOf(err) != report.Refused {
		return nil, report.Errorf(report.CodeOf(err), "%s", err.Error()).WithHint("get the delta again from its source")
	}
	return d, err
}
