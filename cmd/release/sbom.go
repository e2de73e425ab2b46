package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

type object = map[string]any

// writeSBOM writes what the programs consist of, as their build information lists it, in SPDX 2.3.
func (r release) writeSBOM(platforms []platform) error {
	modules, goVersion := map[string]*debug.Module{}, ""
	for _, p := range platforms {
		info, err := buildinfo.ReadFile(r.program(p))
		if err != nil {
			return err
		}
		goVersion = strings.TrimPrefix(info.GoVersion, "go")
		for _, module := range info.Deps {
			if module.Replace != nil {
				module = module.Replace
			}
			modules[module.Path+"@"+module.Version] = module
		}
	}
	data, err := json.MarshalIndent(r.spdx(goVersion, modules), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(r.path(".spdx.json"), append(data, '\n'), 0o644)
}

func (r release) spdx(goVersion string, modules map[string]*debug.Module) object {
	main := spdxPackage("program", name, r.version, "pkg:golang/github.com/solutionctl/solutionctl@v"+r.version)
	main["licenseDeclared"], main["copyrightText"] = "Apache-2.0", "NOASSERTION"
	packages := []object{main, spdxPackage("go", "stdlib", goVersion, "pkg:golang/stdlib@"+goVersion)}
	relationships := []object{
		{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-program"},
		{"spdxElementId": "SPDXRef-program", "relationshipType": "DEPENDS_ON", "relatedSpdxElement": "SPDXRef-go"},
	}
	for i, key := range slices.Sorted(maps.Keys(modules)) {
		m, id := modules[key], fmt.Sprintf("module-%d", i+1)
		p := spdxPackage(id, m.Path, m.Version, "pkg:golang/"+m.Path+"@"+m.Version)
		p["sourceInfo"] = "go.sum: " + cmp.Or(m.Sum, "none")
		packages = append(packages, p)
		relationships = append(relationships, object{"spdxElementId": "SPDXRef-program", "relationshipType": "DEPENDS_ON", "relatedSpdxElement": "SPDXRef-" + id})
	}
	return object{
		"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name + "-" + r.version,
		"documentNamespace": repository + "/releases/download/v" + r.version + "/" + name + "-" + r.version + ".spdx.json",
		"creationInfo":      object{"created": r.created.Format(time.RFC3339), "creators": []string{"Tool: solutionctl-release-" + r.version}},
		"packages":          packages, "relationships": relationships,
	}
}

func spdxPackage(id, title, version, purl string) object {
	return object{
		"SPDXID": "SPDXRef-" + id, "name": title, "versionInfo": version, "downloadLocation": "NOASSERTION", "filesAnalyzed": false,
		"licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION",
		"externalRefs": []object{{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}},
	}
}
