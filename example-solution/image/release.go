package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// release has the settings of solution.yaml, and of the resource definitions beside it, for the programs.
type release struct {
	version  string
	programs []program
	tags     []string // build tags that choose the API versions; see package api
}

type program struct {
	ref  string // reference in the layout, and the directory of the Go package
	name string // of the image and of the executable
}

// source is how solution.yaml names an image that is built here.
const source = "oci:build/images:"

// readRelease reads the release whose solution.yaml is in dir.
func readRelease(dir string) (release, error) {
	var solution struct {
		Spec struct {
			Version  string
			Images   []struct{ Name, Source string }
			Operator struct{ Path string }
		}
	}
	file := filepath.Join(dir, "solution.yaml")
	if err := readYAML(file, &solution); err != nil {
		return release{}, err
	}
	r := release{version: solution.Spec.Version}
	if r.version == "" {
		return release{}, fmt.Errorf("%s: spec.version is missing", file)
	}
	for _, image := range solution.Spec.Images {
		if ref, ok := strings.CutPrefix(image.Source, source); ok {
			r.programs = append(r.programs, program{ref: ref, name: image.Name})
		}
	}
	definitions, err := filepath.Glob(filepath.Join(dir, solution.Spec.Operator.Path, "deploy/crds/*_crd.yaml"))
	if err != nil {
		return release{}, err
	}
	for _, definition := range definitions {
		tag, err := tagOf(definition)
		if err != nil {
			return release{}, err
		}
		r.tags = append(r.tags, tag)
	}
	return r, nil
}

// tagOf returns the build tag of a resource definition: resource and stored version, such as websites_v1beta1.
func tagOf(file string) (string, error) {
	var definition struct {
		Spec struct {
			Names    struct{ Plural string }
			Versions []struct {
				Name    string
				Storage bool
			}
		}
	}
	if err := readYAML(file, &definition); err != nil {
		return "", err
	}
	for _, version := range definition.Spec.Versions {
		if version.Storage {
			return definition.Spec.Names.Plural + "_" + version.Name, nil
		}
	}
	return "", fmt.Errorf("%s: no version is stored", file)
}

func readYAML(file string, v any) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
