package sbom

import (
	"strings"
)

// osvEntry is a vulnerability in the format of https://ossf.github.io/osv-schema/.
type osvEntry struct {
	ID       string        `json:"id"`
	Aliases  []string      `json:"aliases"`
	Affected []osvAffected `json:"affected"`
}

type osvAffected struct {
	Package struct {
		Ecosystem string `json:"ecosystem"`
		Name      string `json:"name"`
	} `json:"package"`
	Ranges []struct {
		Type   string `json:"type"`
		Events []struct {
			Introduced   string `json:"introduced"`
			Fixed        string `json:"fixed"`
			LastAffected string `json:"last_affected"`
		} `json:"events"`
	} `json:"ranges"`
	Versions []string `json:"versions"`
}

// osvEcosystems are the types of packages by OSV's names; those of distributions have a namespace.
var osvEcosystems = map[string]packageURL{
	"Debian": {typ: "deb", path: "debian/"}, "Ubuntu": {typ: "deb", path: "ubuntu/"}, "Alpine": {typ: "apk", path: "alpine/"},
	"Chainguard": {typ: "apk", path: "chainguard/"}, "Wolfi": {typ: "apk", path: "wolfi/"},
	"Red Hat": {typ: "rpm", path: "redhat/"}, "Rocky Linux": {typ: "rpm", path: "rocky/"}, "AlmaLinux": {typ: "rpm", path: "almalinux/"},
	"Go": {typ: "golang"}, "npm": {typ: "npm"}, "crates.io": {typ: "cargo"}, "PyPI": {typ: "pypi"}, "Maven": {typ: "maven"},
}

func (a *advisoryReader) readOSV(entries ...osvEntry) error {
	for _, e := range entries {
		for _, affected := range e.Affected {
			if err := a.readOSVPackage(append([]string{e.ID}, e.Aliases...), &affected); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *advisoryReader) readOSVPackage(ids []string, affected *osvAffected) error {
	ecosystem, release, _ := strings.Cut(affected.Package.Ecosystem, ":")
	p, ok := osvEcosystems[ecosystem]
	if !ok || affected.Package.Name == "" {
		a.leave(affected.Package.Ecosystem + " " + affected.Package.Name)
		return nil
	}
	if release, _, _ = strings.Cut(release, ":"); release != "" && (p.typ == "deb" || p.typ == "apk") {
		p.distro = strings.ToLower(ecosystem) + "-" + strings.TrimPrefix(release, "v")
	}
	name := affected.Package.Name
	if p.typ == "maven" {
		name = strings.Replace(name, ":", "/", 1)
	}
	p.path += name
	sets := osvRanges(affected)
	for start := 0; sets == nil && start < len(affected.Versions); start += 32 {
		sets = append(sets, strings.Join(affected.Versions[start:min(start+32, len(affected.Versions))], "|"))
	}
	if sets == nil {
		a.leave(affected.Package.Ecosystem + " " + name + ", by its commits")
	}
	for _, set := range sets {
		if err := a.ask(ids, p, set); err != nil {
			return err
		}
	}
	return nil
}

// osvRanges returns the ranges of versions: each from an event that introduces the vulnerability to the one that ends it. Ranges of commits are left out.
func osvRanges(affected *osvAffected) (sets []string) {
	for _, r := range affected.Ranges {
		if r.Type == "GIT" {
			continue
		}
		from, open := "", false
		for _, event := range r.Events {
			switch {
			case event.Introduced != "":
				from, open = event.Introduced, true
			case event.Fixed != "" && open:
				sets, open = append(sets, between(from, "<"+event.Fixed)), false
			case event.LastAffected != "" && open:
				sets, open = append(sets, between(from, "<="+event.LastAffected)), false
			}
		}
		if open {
			sets = append(sets, between(from, ""))
		}
	}
	return sets
}

func between(from, end string) string {
	if from == "0" {
		return end
	}
	return strings.TrimSuffix(">="+from+"|"+end, "|")
}
