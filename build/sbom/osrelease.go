package sbom

import (
	"strings"
)

// osRelease identifies a distribution.
type osRelease struct{ id, versionID string }

// Files that identify a distribution, the one that counts first. The first is a link to the second in most images.
var osReleaseFiles = []string{"etc/os-release", "usr/lib/os-release"}

func matchOSRelease(name string) reader {
	if name == osReleaseFiles[0] || name == osReleaseFiles[1] {
		return readOSRelease
	}
	return nil
}

// readOSRelease reads lines of the form NAME=value; values may be quoted as in a shell.
func readOSRelease(f file) (*find, error) {
	data, err := f.readDocument()
	if err != nil {
		return nil, err
	}
	release := &osRelease{}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		value = clean(strings.Trim(value, `"'`), 64)
		switch name {
		case "ID":
			release.id = value
		case "VERSION_ID":
			release.versionID = value
		}
	}
	return &find{release: release}, nil
}

// String returns ID-VERSION_ID, the form of the qualifier distro of a purl.
func (r *osRelease) String() string {
	if r == nil || r.id == "" {
		return ""
	}
	return strings.TrimSuffix(r.id+"-"+r.versionID, "-")
}
