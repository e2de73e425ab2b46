package sbom

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// matchAPK returns the reader of the database of apk.
func matchAPK(name string) reader {
	if name == "lib/apk/db/installed" || name == "usr/lib/apk/db/installed" {
		return readAPK
	}
	return nil
}

// readAPK reads paragraphs of lines with fields of one letter.
func readAPK(f file) (*find, error) {
	if f.size > f.limit.document {
		return nil, f.tooLarge(f.limit.document)
	}
	found, c := &find{}, component{kind: "apk"}
	end := func() error {
		if c.name == "" {
			return nil
		}
		err := found.add(c, f.limit)
		c = component{kind: "apk"}
		return err
	}
	for line, err := range lines(f) {
		if err == nil && line == "" {
			err = end()
		}
		if err != nil {
			return found, err
		}
		letter, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		switch letter {
		case "P":
			c.name = value
		case "V":
			c.version = value
		case "A":
			c.arch = value
		case "L":
			c.license = value
		case "o":
			c.source = value
		case "C":
			c.digest = apkDigest(value)
		}
	}
	return found, end()
}

// apkDigest returns the SHA-1 digest by which apk identifies a package.
func apkDigest(value string) string {
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(value, "Q1"))
	if err != nil || len(sum) != 20 || !strings.HasPrefix(value, "Q1") {
		return ""
	}
	return "sha1:" + hex.EncodeToString(sum)
}
