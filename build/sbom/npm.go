package sbom

import (
	"encoding/json"
	"path"
	"strings"
)

// matchNPM returns the reader of the package.json of an installed module: directly in its directory below node_modules.
func matchNPM(name string) reader {
	if path.Base(name) != "package.json" {
		return nil
	}
	rest, ok := within(name, "node_modules")
	if !ok {
		return nil
	}
	parts := strings.Split(rest, "/")
	if len(parts) == 2 && !strings.HasPrefix(parts[0], "@") || len(parts) == 3 && strings.HasPrefix(parts[0], "@") {
		return readNPM
	}
	return nil
}

func readNPM(f file) (*find, error) {
	data, err := f.readDocument()
	if err != nil {
		return nil, err
	}
	var manifest struct {
		Name     string          `json:"name"`
		Version  string          `json:"version"`
		License  json.RawMessage `json:"license"`
		Licenses json.RawMessage `json:"licenses"`
	}
	if err := json.Unmarshal(data, &manifest); err != nil {
		return nil, err
	}
	if manifest.Name == "" || manifest.Version == "" { // part of a module that marks a directory, not a module
		return nil, nil
	}
	c := component{kind: "npm", version: manifest.Version, license: npmLicense(manifest.License)}
	if c.license == "" {
		c.license = npmLicense(manifest.Licenses)
	}
	if scope, name, ok := strings.Cut(manifest.Name, "/"); ok {
		c.namespace, c.name = scope, name
	} else {
		c.name = manifest.Name
	}
	found := &find{}
	return found, found.add(c, f.limit)
}

// npmLicense reads a license in the forms that it has had: an expression, an object with a type, a list of these.
func npmLicense(data json.RawMessage) string {
	var text string
	if json.Unmarshal(data, &text) == nil {
		return text
	}
	var object struct{ Type, Name string }
	if json.Unmarshal(data, &object) == nil {
		if object.Type != "" {
			return object.Type
		}
		return object.Name
	}
	var list [maxLicenses + 1]json.RawMessage // what is behind them is left out
	if json.Unmarshal(data, &list) != nil || list[maxLicenses] != nil {
		return ""
	}
	var names []string
	for _, item := range list {
		if len(item) > 0 && item[0] == '[' {
			continue
		}
		if name := npmLicense(item); name != "" {
			names = append(names, name)
		}
	}
	return strings.Join(names, " OR ")
}
