package sbom

import (
	"errors"
	"path"
	"slices"
	"strings"
)

// matchDpkg returns readers of the databases of dpkg, in one file or, in images without dpkg, in a file for each package, and of the licenses
// of its packages.
func matchDpkg(name string) reader {
	dir, base := path.Split(name)
	switch {
	case name == "var/lib/dpkg/status", dir == "var/lib/dpkg/status.d/" && !strings.HasSuffix(base, ".md5sums"):
		return readDpkg
	case base == "copyright" && path.Dir(path.Dir(name)) == "usr/share/doc":
		return readCopyright
	}
	return nil
}

func readDpkg(f file) (*find, error) {
	if f.size > f.limit.document {
		return nil, f.tooLarge(f.limit.document)
	}
	found := &find{}
	err := stanzas(f, []string{"Package", "Status", "Version", "Architecture", "Source"}, func(fields map[string]string) error {
		if !isInstalled(fields["Status"]) || fields["Package"] == "" {
			return nil
		}
		source, sourceVersion, _ := strings.Cut(fields["Source"], " ")
		return found.add(component{
			kind: "deb", name: fields["Package"], version: fields["Version"], arch: fields["Architecture"],
			source: source, sourceVersion: strings.Trim(sourceVersion, "() "),
		}, f.limit)
	})
	return found, err
}

// isInstalled reports whether files of a package are there, by its state in dpkg. Images without dpkg have no states.
func isInstalled(status string) bool {
	words := strings.Fields(status)
	return len(words) == 0 || len(words) == 3 && words[2] != "not-installed" && words[2] != "config-files"
}

// maxLicenses is how many licenses of one package are listed.
const maxLicenses = 32

// readCopyright reads the names of licenses in the copyright file of a package, if it is in the machine-readable form.
func readCopyright(f file) (*find, error) {
	var names []string
	first := true
	err := stanzas(f, []string{"Format", "License"}, func(fields map[string]string) error {
		if first && !strings.Contains(fields["Format"], "copyright-format") {
			return errNotMachineReadable
		}
		first = false
		if name := debianLicense(fields["License"]); name != "" && !slices.Contains(names, name) && len(names) < maxLicenses {
			names = append(names, name)
		}
		return nil
	})
	if errors.Is(err, errNotMachineReadable) {
		return nil, nil
	}
	if err != nil || len(names) == 0 {
		return nil, err
	}
	slices.Sort(names)
	return &find{license: map[string]string{parentName(f.path): strings.Join(names, " AND ")}}, nil
}

var errNotMachineReadable = errors.New("the copyright file is plain text")
