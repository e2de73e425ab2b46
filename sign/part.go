package sign

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"

	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/chunk"
)

// VerifyPart compares one part of an archive, which has this number from 1 on, with the signed digests of the whole: see
// [Judge]. It returns the bytes of the archive that the part has.
func VerifyPart(ctx context.Context, part media.Part, number int, list *chunk.List, workers int, sink report.Sink) (chunk.Range, error) {
	for _, at := range placesOf(part.Size, number, list) {
		bad, err := chunk.Verify(ctx, part.Content(), list.Part(at, part.Size), workers, sink)
		if err != nil {
			return chunk.Range{}, err
		}
		if len(bad) == 0 {
			return chunk.Range{From: at, To: at + part.Size}, nil
		}
		if has, err := startsAt(part, list); err != nil || has == at {
			return chunk.Range{}, firstOf(err, report.Errorf(report.Corrupt, "%s is damaged: bytes %d to %d of it differ from what was signed", part.Name, bad[0].From, bad[0].To-1).
				WithHint("copy it again from its source"))
		}
	}
	return chunk.Range{}, misplaced(part, number, list)
}

func firstOf(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// placesOf returns where a part can begin: behind others of its size, or at the end.
func placesOf(size int64, number int, list *chunk.List) []int64 {
	var places []int64
	before := int64(number - 1)
	if size%list.ChunkSize == 0 && size <= list.Size/int64(number) {
		places = append(places, before*size)
	}
	at := list.Size - size
	atEnd := before == 0 && at == 0 || before > 0 && at > 0 && at%before == 0 && at/before >= size
	if atEnd && at%list.ChunkSize == 0 && (len(places) == 0 || places[0] != at) {
		places = append(places, at)
	}
	return places
}

// startsAt returns the place in the archive of the first chunk of a part; it is negative when the archive does not have it.
func startsAt(part media.Part, list *chunk.List) (int64, error) {
	first := sha256.New()
	if _, err := io.Copy(first, io.NewSectionReader(part.Content(), 0, min(part.Size, list.ChunkSize))); err != nil {
		return 0, fmt.Errorf("read %s: %w", part.Name, err)
	}
	digest := first.Sum(nil)
	for i := range list.Len() {
		if bytes.Equal(list.Digests[i*sha256.Size:(i+1)*sha256.Size], digest) {
			return list.Range(i).From, nil
		}
	}
	return -1, nil
}

// misplaced describes a part that is not the one of its number.
func misplaced(part media.Part, number int, list *chunk.List) error {
	at, err := startsAt(part, list)
	switch {
	case err != nil:
		return err
	case at < 0:
		return report.Errorf(report.Corrupt, "%s is damaged, or it is a part of another archive: its first bytes are not in the signed archive", part.Name).
			WithHint("copy it again from its source")
	case at == int64(number-1)*part.Size:
		return report.Errorf(report.Corrupt, "%s is incomplete: it has %d bytes", part.Name, part.Size).WithHint("copy it again from its source")
	case part.Size%list.ChunkSize == 0 && at%part.Size == 0:
		return report.Errorf(report.Corrupt, "%s is another part than its name promises: part %d", part.Name, at/part.Size+1).
			WithHint("give the parts the names that they had")
	default:
		return report.Errorf(report.Corrupt, "%s is another part than its name promises: it has the bytes of the archive from %d on", part.Name, at).
			WithHint("give the parts the names that they had")
	}
}

// FindMisplaced names the first part of an archive that has other bytes at its start than were signed. It returns nil when each part
// begins as it should.
func FindMisplaced(image *media.Image, list *chunk.List) error {
	for n, part := range image.Parts {
		at, err := startsAt(part, list)
		if err != nil {
			return err
		}
		if at != part.At && part.At%list.ChunkSize == 0 {
			return misplaced(part, n+1, list)
		}
	}
	return nil
}
