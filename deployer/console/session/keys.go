package session

import (
	"bytes"
	"compress/flate"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Keys seal the sessions of a console with several replicas. The first one seals, each of them opens.
type Keys []cipher.AEAD

const (
	keySize   = 32 // bytes of a key: AES-256-GCM
	maxKeys   = 16
	maxCookie = 3800 // bytes of a value: browsers allow 4096 with the name and the attributes
)

// ParseKeys reads keys, one a line: 32 random bytes in base64. Lines that begin with # are comments.
func ParseKeys(data []byte) (Keys, error) {
	var keys Keys
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(key) != keySize || len(keys) == maxKeys { // the error would quote the key
			return nil, report.Errorf(report.Invalid, "line %d is not a key: a line has %d random bytes in base64, and there are %d lines at most", number, keySize, maxKeys).
				WithHint("make a key: openssl rand -base64 32")
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, err
		}
		keys = append(keys, aead)
	}
	if len(keys) == 0 {
		return nil, report.Errorf(report.Invalid, "there is no key").WithHint("make one: openssl rand -base64 32")
	}
	return keys, nil
}

// newKeys returns a key of this process.
func newKeys() Keys {
	key := make([]byte, keySize)
	_, _ = rand.Read(key)                                                // it never fails
	keys, _ := ParseKeys([]byte(base64.StdEncoding.EncodeToString(key))) // of this size it is one
	return keys
}

// seal encrypts and authenticates a value for one purpose.
func (k Keys) seal(purpose string, value any) (string, error) {
	var small bytes.Buffer
	w, err := flate.NewWriter(&small, flate.BestCompression)
	if err != nil {
		return "", err
	}
	if err := json.NewEncoder(w).Encode(value); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(k[0].Seal(nil, nil, small.Bytes(), []byte(purpose))), nil
}

// open decrypts a text that was sealed for this purpose.
func (k Keys) open(purpose, text string, value any) bool {
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return false
	}
	for _, key := range k {
		small, err := key.Open(nil, nil, data, []byte(purpose))
		if err != nil {
			continue
		}
		plain, err := io.ReadAll(flate.NewReader(bytes.NewReader(small)))
		return err == nil && json.Unmarshal(plain, value) == nil
	}
	return false
}
