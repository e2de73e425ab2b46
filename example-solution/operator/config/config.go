// Package config reads the OperatorConfig: the document from which an operator learns where its images are.
//
// It lists every imported version of the Solution, not only the deployed one. An operator must take the images of its
// components from here and from nowhere else: the site has no internet, and the names of its registry are not known
// before the deployment.
package config

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// The type of the document that [Parse] reads.
const (
	APIVersion = "solutions.metalk8s.scality.com/v1alpha1"
	Kind       = "OperatorConfig"
)

// ErrNotFound means that no imported archive has the image.
var ErrNotFound = errors.New("not in any imported version of the solution")

// Config is an OperatorConfig.
type Config struct {
	APIVersion   string                  `json:"apiVersion"`
	Kind         string                  `json:"kind"`
	Repositories map[string][]Repository `json:"repositories"` // by version of the Solution
}

// Repository is a place that images are pulled from.
type Repository struct {
	Endpoint string   `json:"endpoint"` // such as registry.example:5000/example-solution-1.0.0
	Images   []string `json:"images"`   // name:tag
}

// Load reads the file again, so that a version that was imported after the operator started is found.
func Load(file string) (*Config, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	c, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// Parse reads an OperatorConfig strictly: what it does not know is an error, because a word that is overlooked here is
// an image that cannot be pulled later.
func Parse(data []byte) (*Config, error) {
	var c Config
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return nil, err
	}
	if c.APIVersion != APIVersion || c.Kind != Kind {
		return nil, fmt.Errorf("want %s %s, have %q %q", APIVersion, Kind, c.APIVersion, c.Kind)
	}
	if len(c.Repositories) == 0 {
		return nil, errors.New("repositories is empty")
	}
	for version, repositories := range c.Repositories {
		for i, r := range repositories {
			if err := r.check(); err != nil {
				return nil, fmt.Errorf("repositories[%s][%d]: %w", version, i, err)
			}
		}
	}
	return &c, nil
}

func (r Repository) check() error {
	if r.Endpoint == "" || strings.HasSuffix(r.Endpoint, "/") {
		return fmt.Errorf("endpoint: have %q, want HOST/PATH", r.Endpoint)
	}
	for _, image := range r.Images {
		name, tag, _ := strings.Cut(image, ":")
		if name == "" || tag == "" || strings.ContainsAny(tag, ":/") {
			return fmt.Errorf("images: have %q, want NAME:TAG", image)
		}
	}
	return nil
}

// Image returns the reference from which to pull the named image of a version of the Solution, or [ErrNotFound].
func (c *Config) Image(version, name string) (string, error) {
	for _, r := range c.Repositories[version] {
		for _, image := range r.Images {
			if strings.HasPrefix(image, name+":") {
				return r.Endpoint + "/" + image, nil
			}
		}
	}
	return "", fmt.Errorf("image %s of version %s: %w", name, version, ErrNotFound)
}
