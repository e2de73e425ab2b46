package main

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed packaging
var packaging embed.FS

const maintainer = "solutionctl maintainers <solutionctl@users.noreply.github.com>"

const summary = "Build, check, sign and deploy Solutions"

const description = summary + `
 A Solution is a Kubernetes application for sites without internet: one ISO
 file with container images, operators, Helm charts, manifests and monitoring.
 .
 solutionctl builds, checks and signs such archives where they are made. At a
 site it verifies and imports them, serves their images to the nodes straight
 from the archive, and deploys, upgrades and removes the applications.
 .
 The package installs services for systemd, and starts none of them.`

// writePackages writes the deb, the rpm and the apk of a platform. The apk is for command lines: Alpine has no systemd, and so
// it brings no services.
func (r release) writePackages(ctx context.Context, p platform) error {
	for _, format := range []string{"deb", "rpm", "apk"} {
		files, err := r.packageFiles(p, format)
		if err == nil {
			err = r.writePackage(ctx, p, format, files)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", format, err)
		}
	}
	return nil
}

// packageFiles returns the files that a package installs.
func (r release) packageFiles(p platform, format string) ([]file, error) {
	files := []file{{path: "usr/bin/" + name, mode: 0o755, source: r.program(p)}}
	pages, err := r.inputFiles("man", "usr/share/man/man1")
	if err != nil {
		return nil, err
	}
	doc := "usr/share/doc/" + name + "/"
	news := file{path: doc + "CHANGELOG.md", mode: 0o644, source: filepath.Join(r.input, "CHANGELOG.md")}
	toCompress := append(pages, news)
	if format == "deb" {
		toCompress = append(toCompress, r.packagingFile("changelog", doc+"changelog"))
	}
	packed, err := compressed(toCompress)
	if err != nil {
		return nil, err
	}
	files = append(files, packed...)
	for _, c := range completions {
		to := c.others
		if format == "deb" {
			to = c.deb
		}
		files = append(files, file{path: "usr/share/" + to, mode: 0o644, source: filepath.Join(r.input, "completions", c.shell)})
	}
	if format == "deb" {
		files = append(files, r.packagingFile("copyright", doc+"copyright"), r.packagingFile("lintian", "usr/share/lintian/overrides/"+name))
	} else {
		files = append(files, file{path: "usr/share/licenses/" + name + "/LICENSE", mode: 0o644, source: filepath.Join(r.input, "LICENSE")})
	}
	if format == "apk" {
		return files, nil
	}
	units, err := r.inputFiles("units", "usr/lib/systemd/system")
	return slices.Concat(files, units, []file{
		r.packagingFile("sysusers.conf", "usr/lib/sysusers.d/"+name+".conf"), r.packagingFile("tmpfiles.conf", "usr/lib/tmpfiles.d/"+name+".conf"),
	}), err
}

// packagingFile returns one of the files that every release has, with the values of this one.
func (r release) packagingFile(from, to string) file {
	data, err := packaging.ReadFile("packaging/" + from)
	if err != nil {
		panic(err) // it is embedded
	}
	return file{path: to, mode: 0o644, data: r.fill(string(data))}
}

// writePackage lets nfpm write one package.
func (r release) writePackage(ctx context.Context, p platform, format string, files []file) error {
	work, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work) //nolint:errcheck // a temporary directory
	config, err := r.nfpmConfig(work, p, format, files)
	if err != nil {
		return err
	}
	data, err := json.Marshal(config) // which is YAML, too
	if err != nil {
		return err
	}
	configFile := filepath.Join(work, "nfpm.yaml")
	if err = os.WriteFile(configFile, data, 0o600); err != nil {
		return err
	}
	to, err := filepath.Abs(r.dir)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, r.nfpm, "package", "--packager", format, "--config", configFile, "--target", to+"/")
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(r.created.Unix(), 10))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}

// nfpmConfig describes a package to nfpm. What has no file yet is written into work.
func (r release) nfpmConfig(work string, p platform, format string, files []file) (object, error) {
	when := r.created.Format(time.RFC3339)
	var contents []object
	for i, f := range files {
		source := f.source
		if source == "" {
			source = filepath.Join(work, strconv.Itoa(i))
			if err := os.WriteFile(source, f.data, 0o600); err != nil {
				return nil, err
			}
		}
		source, err := filepath.Abs(source)
		if err != nil {
			return nil, err
		}
		contents = append(contents, object{"src": source, "dst": "/" + f.path, "file_info": object{"mode": f.mode, "owner": "root", "group": "root", "mtime": when}})
	}
	config := object{
		"name": name, "arch": p.architecture, "platform": p.os, "version": r.version, "version_schema": "semver",
		"section": "admin", "priority": "optional", "maintainer": maintainer, "homepage": repository, "license": "Apache-2.0",
		"description": description, "mtime": when, "umask": 0o022, "disable_globbing": true, "contents": contents,
		"rpm": object{"summary": summary, "buildhost": "localhost", "group": "System/Management", "packager": maintainer},
		"deb": object{"compression": "xz"},
	}
	if format == "rpm" {
		_, text, _ := strings.Cut(description, "\n ")
		config["description"] = strings.ReplaceAll(strings.ReplaceAll(text, "\n .\n", "\n\n"), "\n ", "\n")
	}
	if format != "apk" {
		scripts := object{}
		for _, script := range []string{"postinstall", "preremove", "postremove"} {
			path := filepath.Join(work, script)
			if err := os.WriteFile(path, r.packagingFile(script, "").data, 0o600); err != nil {
				return nil, err
			}
			scripts[script] = path
		}
		config["scripts"] = scripts
	}
	return config, nil
}
