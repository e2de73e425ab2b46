package sbom

import (
	"path"
	"strings"
)

// matchPython returns the reader of the metadata of an installed distribution package of Python.
func matchPython(name string) reader {
	base, parent := path.Base(name), parentName(name)
	switch {
	case base == "METADATA" && strings.HasSuffix(parent, ".dist-info"),
		base == "PKG-INFO" && (strings.HasSuffix(parent, ".egg-info") || parent == "EGG-INFO"),
		strings.HasSuffix(base, ".egg-info"):
		return readPython
	}
	return nil
}

func readPython(f file) (*find, error) {
	found := &find{}
	done := false
	err := stanzas(f, []string{"Name", "Version", "License-Expression", "License"}, func(fields map[string]string) error {
		if done { // the rest is the description
			return nil
		}
		done = true
		license := fields["License-Expression"]
		if license == "" && fields["License"] != "UNKNOWN" {
			license = fields["License"]
		}
		return found.add(component{kind: "pypi", name: fields["Name"], version: fields["Version"], license: license}, f.limit)
	})
	return found, err
}
