package iso

import (
	"bytes"
	"crypto/md5" // the format is MD5; it finds bad media, not forgery
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"

	"github.com/solutionctl/solutionctl/schema/report"
)

// The format of isomd5sum: texts that end in semicolons in the application use field of the primary volume descriptor.
// Its fragment sums let a check of bad media end early. They are digits of the running checksum, taken after the block
// that crosses into each new 21st of the image.
const (
	md5Label        = "ISO MD5SUM = "
	md5SkipLabel    = "SKIPSECTORS = "
	md5Skip         = 15 // sectors at the end, which drives of old could not read
	md5Block        = systemArea * sectorSize
	md5Fragments    = 20
	md5FragmentSize = 3
	md5Offset       = systemArea*sectorSize + applicationUse
)

// ImplantMD5 writes the checksum of a finished image into it, as implantisomd5 does, for checkisomd5 and for CheckMD5.
// A checksum that is there already is replaced; other content of the field is refused. It reads the whole image and
// changes it, so it comes before anything that signs or hashes the file.
//
// The result is that of implantisomd5 byte for byte, except for images below 702 KiB: there it leaves out the sums of
// fragments without a block of their own, and checkisomd5 calls its images broken. These sums are zeros here.
func ImplantMD5(f interface {
	io.ReaderAt
	io.WriterAt
}, size int64,
) error {
	volume, field, err := readApplicationUse(f, size)
	if err != nil {
		return fmt.Errorf("implant MD5: %w", err)
	}
	if !strings.HasPrefix(field, md5Label) && strings.Trim(field, " ") != "" {
		return report.Errorf(report.Invalid, "implant MD5: the application use field of the image is taken")
	}
	sum, fragments, err := sumMD5(f, volume-md5Skip*sectorSize)
	if err != nil {
		return fmt.Errorf("implant MD5: %w", err)
	}
	text := fmt.Sprintf("%s%x;%s%d;RHLISOSTATUS=0;FRAGMENT SUMS = %s;FRAGMENT COUNT = %d;THIS IS NOT THE SAME AS RUNNING MD5SUM ON THIS ISO!!",
		md5Label, sum, md5SkipLabel, md5Skip, fragments, md5Fragments)
	if _, err := f.WriteAt(padText(nil, text, applicationUseSize), md5Offset); err != nil {
		return fmt.Errorf("implant MD5: %w", err)
	}
	return nil
}

// CheckMD5 compares an image with the checksum that ImplantMD5 or implantisomd5 put into it. It returns an error with
// [report.Corrupt] when they differ and one with [report.Invalid] when the image has none. It finds bad media, and
// does not protect from an attacker, who can change the checksum as well.
func CheckMD5(r io.ReaderAt, size int64) error {
	volume, field, err := readApplicationUse(r, size)
	if err != nil {
		return fmt.Errorf("check MD5: %w", err)
	}
	want, skip, err := parseMD5(field)
	if err != nil {
		return fmt.Errorf("check MD5: %w", err)
	}
	got, _, err := sumMD5(r, volume-skip*sectorSize)
	if err != nil {
		return fmt.Errorf("check MD5: %w", err)
	}
	if !bytes.Equal(got, want) {
		return report.Errorf(report.Corrupt, "check MD5: the image has %x, want %x", got, want).WithHint("copy or download the image again")
	}
	return nil
}

// parseMD5 returns the checksum that the application use field holds and the number of sectors that it leaves out.
func parseMD5(field string) (sum []byte, skip int64, err error) {
	skip = -1
	for text := range strings.SplitSeq(field, ";") {
		switch {
		case strings.HasPrefix(text, md5Label):
			sum, err = hex.DecodeString(text[len(md5Label):])
		case strings.HasPrefix(text, md5SkipLabel):
			skip, err = strconv.ParseInt(text[len(md5SkipLabel):], 10, 32)
		}
		if err != nil {
			return nil, 0, report.Errorf(report.Corrupt, "the recorded checksum is damaged: %w", err)
		}
	}
	if len(sum) != md5.Size || skip < 0 {
		return nil, 0, report.Errorf(report.Invalid, "the image has no checksum of isomd5sum")
	}
	return sum, skip, nil
}

// readApplicationUse returns the size of the volume in bytes and the application use field.
func readApplicationUse(r io.ReaderAt, size int64) (volume int64, field string, err error) {
	b := make([]byte, sectorSize)
	if n, err := r.ReadAt(b, systemArea*sectorSize); n < len(b) {
		if errors.Is(err, io.EOF) {
			return 0, "", report.Errorf(report.Invalid, "the file is too short to be an ISO 9660 image")
		}
		return 0, "", err
	}
	if b[0] != descriptorPrimary || string(b[1:6]) != standardID {
		return 0, "", report.Errorf(report.Invalid, "the file does not begin with a primary volume descriptor of ISO 9660")
	}
	volume = int64(binary.BigEndian.Uint32(b[84:])) * sectorSize
	if volume > size {
		return 0, "", report.Errorf(report.Corrupt, "the volume has %d bytes and the file only %d", volume, size).WithHint("copy or download the image again")
	}
	return volume, string(b[applicationUse : applicationUse+applicationUseSize]), nil
}

// sumMD5 returns the checksum of the first n bytes of an image, its application use field taken as blank, and the
// fragment sums.
func sumMD5(r io.ReaderAt, n int64) (sum, fragments []byte, err error) {
	digest := md5.New()
	fragments = bytes.Repeat([]byte{'0'}, md5Fragments*md5FragmentSize)
	block := make([]byte, md5Block)
	last := int64(0)
	for at := int64(0); at < n; at += md5Block {
		b := block[:min(md5Block, n-at)]
		if read, err := r.ReadAt(b, at); read < len(b) {
			return nil, nil, fmt.Errorf("read the image at byte %d: %w", at, err)
		}
		blankApplicationUse(b, at)
		digest.Write(b)
		if fragment := at * (md5Fragments + 1) / n; fragment != last {
			copy(fragments[(fragment-1)*md5FragmentSize:], fragmentSum(digest))
			last = fragment
		}
	}
	return digest.Sum(nil), fragments, nil
}

// fragmentSum returns the first hexadecimal digit, without leading zeros, of each of the first bytes of the digest.
func fragmentSum(digest hash.Hash) []byte {
	var text []byte
	for _, b := range digest.Sum(nil)[:md5FragmentSize] {
		text = append(text, strconv.FormatUint(uint64(b), 16)[0])
	}
	return text
}

// blankApplicationUse overwrites the part of the field that lies in b, the bytes of the image from at on.
func blankApplicationUse(b []byte, at int64) {
	from, to := max(md5Offset-at, 0), min(md5Offset+applicationUseSize-at, int64(len(b)))
	for i := from; i < to; i++ {
		b[i] = ' '
	}
}
