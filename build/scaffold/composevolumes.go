package scaffold

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/compose-spec/compose-go/v2/types"
)

// maxConfig is how much a ConfigMap holds.
const maxConfig = 1 << 20

// claimSize is the size of a volume whose size the compose file does not state.
const claimSize = "1Gi"

// podVolumes are the volumes of a pod and where its container has them.
type podVolumes struct {
	volumes, mounts []any
	recreate        bool // one of them can be in one pod only
	service         string
}

// volume enters a volume and its mount.
func (v *podVolumes) volume(target string, readOnly bool, subPath string, source map[string]any) {
	name := fmt.Sprintf("volume-%d", len(v.volumes)+1)
	source["name"] = name
	mount := map[string]any{"name": name, "mountPath": target}
	if readOnly {
		mount["readOnly"] = true
	}
	if subPath != "" {
		mount["subPath"] = subPath
	}
	v.volumes, v.mounts = append(v.volumes, source), append(v.mounts, mount)
}

// volumes makes PersistentVolumeClaims, ConfigMaps and Secrets of the mounts of a service.
func (c *composer) volumes(name string, s types.ServiceConfig) (volumes, mounts []any, recreate bool, err error) {
	v := &podVolumes{service: name}
	for _, volume := range s.Volumes {
		if err := c.mount(v, s, volume); err != nil {
			return nil, nil, false, err
		}
	}
	for _, target := range s.Tmpfs {
		target, _, _ = strings.Cut(target, ":")
		v.volume(target, false, "", map[string]any{"emptyDir": map[string]any{"medium": "Memory"}})
	}
	if s.ShmSize > 0 {
		v.volume("/dev/shm", false, "", map[string]any{"emptyDir": map[string]any{"medium": "Memory", "sizeLimit": strconv.FormatInt(int64(s.ShmSize), 10)}})
	}
	for _, config := range s.Configs {
		if err := c.object(v, "ConfigMap", types.FileReferenceConfig(config), types.FileObjectConfig(c.project.Configs[config.Source]), "/"); err != nil {
			return nil, nil, false, err
		}
	}
	for _, secret := range s.Secrets {
		if err := c.object(v, "Secret", types.FileReferenceConfig(secret), types.FileObjectConfig(c.project.Secrets[secret.Source]), "/run/secrets/"); err != nil {
			return nil, nil, false, err
		}
	}
	return v.volumes, v.mounts, v.recreate, nil
}

// mount converts one entry of volumes.
func (c *composer) mount(v *podVolumes, s types.ServiceConfig, volume types.ServiceVolumeConfig) error {
	switch {
	case volume.Type == types.VolumeTypeTmpfs:
		v.volume(volume.Target, false, "", map[string]any{"emptyDir": map[string]any{"medium": "Memory"}})
	case volume.Type == types.VolumeTypeVolume && volume.Source == "":
		v.volume(volume.Target, false, "", map[string]any{"emptyDir": map[string]any{}})
	case volume.Type == types.VolumeTypeVolume:
		claim, made := validName(volume.Source), c.project.Volumes[volume.Source]
		v.recreate = true
		// A directory of its own: databases refuse the root of a file system, which has lost+found.
		v.volume(volume.Target, volume.ReadOnly, "data", map[string]any{"persistentVolumeClaim": map[string]any{"claimName": claim}})
		if made.Driver != "" && made.Driver != "local" || len(made.DriverOpts) > 0 {
			c.remark("volume %s does not keep its driver and its options: choose a StorageClass, or bring a PersistentVolume", volume.Source)
		}
		if made.External {
			c.remark("PersistentVolumeClaim %s has to be there: the compose file calls it external", claim)
			return nil
		}
		return c.claim(claim)
	case volume.Type == types.VolumeTypeBind:
		return c.bind(v, s, volume)
	default:
		c.remark("left out %s of service %s: nothing in a cluster is like a volume of type %s", volume.Target, s.Name, volume.Type)
	}
	return nil
}

// claim makes a PersistentVolumeClaim, once for all services.
func (c *composer) claim(name string) error {
	if c.claims[name] {
		c.remark("volume %s is used by several services: their pods have to run on one node, unless its storage can be shared", name)
		return nil
	}
	c.claims[name] = true
	c.remark("volume %s is a PersistentVolumeClaim of %s: write more into the manifest where it needs it", name, claimSize)
	return c.add("volumes", map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadataOf(name, ""),
		"spec": map[string]any{"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": claimSize}}},
	})
}

// bind makes a ConfigMap of a file or a directory beside the compose file.
func (c *composer) bind(v *podVolumes, s types.ServiceConfig, volume types.ServiceVolumeConfig) error {
	source := c.beside(volume.Source)
	info, err := fs.Stat(c.source.Files, source)
	if err != nil {
		c.remark("%s of service %s is an empty directory: there is no %s", volume.Target, s.Name, volume.Source)
		v.volume(volume.Target, false, "", map[string]any{"emptyDir": map[string]any{}})
		return nil
	}
	files := map[string]string{}
	total := 0
	if !info.IsDir() {
		files[path.Base(source)] = source
	}
	err = fs.WalkDir(c.source.Files, source, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != source:
			total = maxConfig + 1 // a ConfigMap has no directories
			return fs.SkipAll
		case entry.IsDir():
			return nil
		}
		one, err := entry.Info()
		if err != nil {
			return err
		}
		if total += int(min(one.Size(), maxConfig+1)); total > maxConfig {
			return fs.SkipAll
		}
		files[path.Base(name)] = name
		return nil
	})
	if err != nil {
		return err
	}
	if total > maxConfig {
		c.remark("left out %s of service %s: %s of the host is too large, or too deep, for a ConfigMap; put it into the image", volume.Target, s.Name, volume.Source)
		return nil
	}
	data := map[string][]byte{}
	for name, file := range files {
		if data[name], err = fs.ReadFile(c.source.Files, file); err != nil {
			return err
		}
	}
	base := validName(v.service + "-" + path.Base(source))
	name := base
	for i := 2; c.binds[name] != "" && c.binds[name] != source; i++ {
		name = fmt.Sprintf("%s-%d", base, i)
	}
	c.binds[name] = source
	subPath := ""
	if !info.IsDir() {
		subPath = path.Base(source)
	}
	c.remark("%s of service %s is a ConfigMap with the content of %s: it cannot be written to", volume.Target, s.Name, volume.Source)
	v.volume(volume.Target, true, subPath, map[string]any{"configMap": map[string]any{"name": name}})
	return c.addData(v.service, "ConfigMap", name, data)
}

// object makes a ConfigMap or a Secret of an entry of configs or secrets.
func (c *composer) object(v *podVolumes, kind string, reference types.FileReferenceConfig, object types.FileObjectConfig, dir string) error {
	name := validName(reference.Source)
	target := cmp.Or(reference.Target, reference.Source)
	if !path.IsAbs(target) {
		target = dir + target
	}
	source := map[string]any{"configMap": map[string]any{"name": name}}
	if kind == "Secret" {
		source = map[string]any{"secret": map[string]any{"secretName": name}}
	}
	v.volume(target, true, reference.Source, source)
	key := kind + "/" + name
	if c.claims[key] {
		return nil
	}
	c.claims[key] = true
	content := []byte(object.Content)
	switch {
	case bool(object.External):
		c.remark("%s %s has to be there: the compose file calls it external", kind, name)
		return nil
	case object.File != "":
		data, err := fs.ReadFile(c.source.Files, c.beside(object.File))
		if err != nil {
			c.remark("%s %s has to be there: there is no %s", kind, name, object.File)
			return nil
		}
		content = data
	case object.Environment != "":
		value, ok := c.variable(object.Environment)
		if !ok {
			c.remark("%s %s has to be there: variable %s has no value", kind, name, object.Environment)
			return nil
		}
		content = []byte(value)
	}
	if kind == "Secret" {
		c.remark("Secret %s is in the archive for everybody to read: one of the site is better", name)
	}
	return c.addData(v.service, kind, name, map[string][]byte{reference.Source: content})
}

// addData makes a ConfigMap or a Secret.
func (c *composer) addData(service, kind, name string, data map[string][]byte) error {
	text, binary := map[string]any{}, map[string]any{}
	for key, content := range data {
		if kind == "Secret" || !utf8.Valid(content) {
			binary[key] = base64.StdEncoding.EncodeToString(content)
		} else {
			text[key] = string(content)
		}
	}
	object := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": metadataOf(name, service)}
	if len(text) > 0 {
		object["data"] = text
	}
	if len(binary) > 0 && kind == "Secret" {
		object["data"] = binary
	} else if len(binary) > 0 {
		object["binaryData"] = binary
	}
	return c.add(service, object)
}
