package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/solutionctl/solutionctl/schema"
)

// hostFile has the decisions of the first import on a host.
const hostFile = "host.json"

// NotificationsFile is the record of the problems that were sent to a webhook, in the directory of a store, and DamagedSuffix is at the end
// of the name under which a damaged one is kept.
const (
	NotificationsFile = "notifications.json"
	DamagedSuffix     = ".damaged"
)

// NotificationsPath returns the path of the record of sent problems, unless a command names another one.
func (s *Store) NotificationsPath() string { return filepath.Join(s.dir, NotificationsFile) }

func (s *Store) hostPath() string { return filepath.Join(s.dir, hostFile) }

// RegistryMode returns the server of the images of this host's archives, "" before the first import.
func (s *Store) RegistryMode() (schema.RegistryMode, error) {
	data, err := readFile(s.hostPath(), maxShared)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", explainAccess(err)
	}
	settings, err := schema.ParseStored[schema.HostSettings]("host", s.hostPath(), data)
	if err != nil {
		return "", err
	}
	return settings.RegistryMode, nil
}

// SetRegistryMode records who serves the images of this host's archives.
func (l *Locked) SetRegistryMode(mode schema.RegistryMode, writtenBy string) error {
	data, err := schema.MarshalStored(schema.HostSettings{Stamp: schema.NewStamp("host", writtenBy), RegistryMode: mode})
	if err != nil {
		return err
	}
	return writeShared(l.hostPath(), data)
}

// DetectRegistryMode returns the mode to choose where nothing was decided yet: MetalK8s' nginx where its configuration
// is, and solutionctl everywhere else.
func DetectRegistryMode(nginxDir string) schema.RegistryMode {
	if info, err := os.Stat(nginxDir); err == nil && info.IsDir() {
		return schema.RegistryMetalK8s
	}
	return schema.RegistryOwn
}
