package oci

import (
	"encoding/hex"
	"errors"
	"hash"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/solutionctl/solutionctl/schema/report"
)

// VerifyReader returns a reader of r that fails with [report.Corrupt] unless the bytes have the digest and the size of
// d. It fails as early as it can: with the last byte when the digest differs, with the first byte too many, at the end
// of r when bytes are missing.
func VerifyReader(r io.Reader, d Descriptor) io.Reader {
	h, err := v1.Hasher(d.Digest.Algorithm)
	v := &verifier{r: r, d: d, hash: h, left: d.Size, err: err}
	if err == nil && d.Size == 0 {
		v.err = v.checkDigest()
	}
	return v
}

// rejecter is a reader that wants to know that its content is damaged and can say more about it.
type rejecter interface{ reject(err error) error }

type verifier struct {
	r    io.Reader
	d    Descriptor
	hash hash.Hash
	left int64
	err  error
}

func (v *verifier) Read(p []byte) (int, error) {
	if v.err != nil {
		return 0, v.err
	}
	n, err := v.r.Read(p)
	switch {
	case int64(n) > v.left:
		n = int(v.left)
		err = report.Errorf(report.Corrupt, "blob %s: more than %d bytes", v.d.Digest, v.d.Size)
	case n > 0:
		v.hash.Write(p[:n])
		v.left -= int64(n)
		if v.left == 0 {
			if mismatch := v.checkDigest(); mismatch != nil {
				err = mismatch
			}
		}
	}
	if errors.Is(err, io.EOF) && v.left > 0 {
		err = report.Errorf(report.Corrupt, "blob %s: %d bytes, want %d", v.d.Digest, v.d.Size-v.left, v.d.Size)
	}
	if r, ok := v.r.(rejecter); ok && report.CodeOf(err) == report.Corrupt {
		err = r.reject(err)
	}
	v.err = err
	return n, err
}

func (v *verifier) checkDigest() error {
	if got := hex.EncodeToString(v.hash.Sum(nil)); got != v.d.Digest.Hex {
		return report.Errorf(report.Corrupt, "blob %s: its bytes have the digest %s:%s", v.d.Digest, v.d.Digest.Algorithm, got)
	}
	return nil
}
