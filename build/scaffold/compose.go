package scaffold

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/template"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/sirupsen/logrus"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/kube/manifest"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// composeFiles are the names that docker compose reads in a directory, in its order.
var composeFiles = []string{"compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"}

// isCompose reports whether a document is a compose file: it has services and is not a Kubernetes object.
func isCompose(value map[string]any) bool {
	services, ok := value["services"].(map[string]any)
	return ok && len(services) > 0 && value["apiVersion"] == nil && value["kind"] == nil
}

// composer turns the services of a compose file into objects.
type composer struct {
	*builder
	source    Source // the file
	project   *types.Project
	documents []document
	claims    map[string]bool   // volumes that have a PersistentVolumeClaim
	names     map[string]bool   // of Services
	binds     map[string]string // the directory or file of a ConfigMap, by its name
	variables int               // bytes of variables that may still be read, see maxVariables
}

// addCompose makes a component of a compose file.
func (b *builder) addCompose(ctx context.Context, s Source) error {
	called := "" // the component is called after the Solution
	if info, err := fs.Stat(s.Files, s.Path); err == nil && info.IsDir() {
		called = path.Base(s.Path)
		i := slices.IndexFunc(composeFiles, func(name string) bool { return s.has(name) })
		s = Source{Name: path.Join(s.Name, composeFiles[i]), Files: s.Files, Path: path.Join(s.Path, composeFiles[i])}
	}
	name := b.componentName(called)
	c := &composer{builder: b, source: s, claims: map[string]bool{}, names: map[string]bool{}, binds: map[string]string{}, variables: maxVariables}
	var err error
	if c.project, err = c.load(ctx, name); err != nil {
		return err
	}
	for _, disabled := range sortedKeys(c.project.DisabledServices) {
		c.remark("left out service %s: it belongs to the profiles %s", disabled, strings.Join(c.project.DisabledServices[disabled].Profiles, ", "))
	}
	if len(c.project.Networks) > 1 {
		c.remark("networks are not kept apart: each service of %s reaches each other", s.Name)
	}
	for _, service := range sortedKeys(c.project.Services) {
		if err = c.refusePrivileges(c.project.Services[service]); err != nil {
			return err
		}
	}
	for _, service := range sortedKeys(c.project.Services) {
		if err = c.service(c.project.Services[service]); err != nil {
			return err
		}
	}
	if err = c.checkVariables(); err != nil {
		return err
	}
	return b.addObjects(s, KindCompose, name, c.documents)
}

// load reads the compose file. Variables come from the file .env beside it, and from nowhere else.
func (c *composer) load(ctx context.Context, name string) (*types.Project, error) {
	data, err := fs.ReadFile(c.source.Files, c.source.Path)
	if err != nil {
		return nil, err
	}
	if err = c.refuseOtherFiles(data); err != nil {
		return nil, err
	}
	environment, err := c.environmentFile(".env", nil)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	logrus.StandardLogger().SetOutput(io.Discard) // the loader warns there, and nothing else does
	unset := map[string]bool{}
	project, err := loader.LoadWithContext(ctx, types.ConfigDetails{
		ConfigFiles: []types.ConfigFile{{Filename: path.Base(c.source.Path), Content: data}},
		Environment: environment,
	}, func(o *loader.Options) {
		o.SetProjectName(name, true)
		o.SkipInclude, o.SkipResolveEnvironment, o.ResolvePaths = true, true, false
		o.Interpolate.Substitute = func(text string, lookup template.Mapping) (string, error) {
			if excess := c.checkReferences(text); excess != nil {
				return "", excess
			}
			return template.Substitute(text, lookup)
		}
		lookup := c.bounded(o.Interpolate.LookupValue)
		o.Interpolate.LookupValue = func(key string) (string, bool) {
			value, ok := lookup(key)
			unset[key] = unset[key] || !ok
			return value, ok
		}
	})
	if excess := c.checkVariables(); excess != nil {
		return nil, excess
	}
	if err != nil {
		return nil, report.Errorf(report.Invalid, "%s cannot be read: %w", c.source.Name, err).WithHint("try it: docker compose --file %s config", report.ShellFile(c.source.Name))
	}
	for _, key := range sortedKeys(unset) {
		if unset[key] && (bytes.Contains(data, []byte("${"+key+"}")) || bytes.Contains(data, []byte("$"+key))) {
			c.remark("variable %s has no value, and is empty: set it in the file .env beside %s", key, c.source.Name)
		}
	}
	return project, nil
}

// refuseOtherFiles refuses references to other files, which the loader would read by itself: without bounds, and from the current directory.
func (c *composer) refuseOtherFiles(data []byte) error {
	documents, err := schema.ParseKubernetes(c.source.Name, data)
	if err != nil {
		return err
	}
	if len(documents) != 1 {
		return report.Errorf(report.Invalid, "%s has %s, and a compose file is one", c.source.Name, report.Count(len(documents), "document")).
			WithHint("run: docker compose --file %s config > all.yaml, and name all.yaml", report.ShellFile(c.source.Name))
	}
	value, _ := documents[0].Value().(map[string]any)
	other := ""
	if value["include"] != nil {
		other = "include"
	}
	services, _ := value["services"].(map[string]any)
	for _, service := range services {
		definition, _ := service.(map[string]any)
		if extends, ok := definition["extends"].(map[string]any); ok && extends["file"] != nil {
			other = "extends"
		}
		if definition["label_file"] != nil {
			other = "label_file"
		}
	}
	if other == "" {
		return nil
	}
	return report.Errorf(report.Invalid, "%s refers to other files (%s)", c.source.Name, other).
		WithHint("run: docker compose --file %s config > all.yaml, and name all.yaml", report.ShellFile(c.source.Name))
}

// beside is the path of a file that the compose file names.
func (c *composer) beside(name string) string { return path.Join(path.Dir(c.source.Path), name) }

// add enters an object into the file of a service or a volume.
func (c *composer) add(file string, object map[string]any) error {
	text, err := yaml.Marshal(object)
	if err != nil {
		return err
	}
	value, err := manifest.Value(file, text) // as it will be read
	if err != nil {
		return err
	}
	c.documents = append(c.documents, document{file + ".yaml", c.source.Name, text, value})
	return nil
}

// refusePrivileges refuses privileges of a container over its node: a conversion must not grant them silently.
func (c *composer) refusePrivileges(s types.ServiceConfig) error {
	var wants []string
	want := func(asked bool, what string) {
		if asked {
			wants = append(wants, what)
		}
	}
	want(s.Privileged, "privileged")
	want(s.NetworkMode == "host", "network_mode: host")
	want(s.Pid == "host", "pid: host")
	want(s.Ipc == "host", "ipc: host")
	want(s.UserNSMode == "host", "userns_mode: host")
	want(len(s.Devices) > 0, "devices")
	want(s.UseAPISocket, "use_api_socket")
	for _, capability := range s.CapAdd {
		want(capability != "NET_BIND_SERVICE" && capability != "CAP_NET_BIND_SERVICE", "cap_add: "+capability)
	}
	for _, volume := range s.Volumes {
		want(volume.Type == types.VolumeTypeBind && path.IsAbs(volume.Source), volume.Source+" of the host")
	}
	if len(wants) == 0 {
		return nil
	}
	return report.Errorf(report.Invalid, "service %s of %s needs privileges over its host: %s", s.Name, c.source.Name, strings.Join(wants, ", ")).
		WithHint("take the service out of the compose file, write its manifests with the rights that it needs, and name them with one more --from")
}

// validName turns the name of a service, a volume or a file into one of Kubernetes.
func validName(text string) string {
	return strings.Trim(notInName.ReplaceAllString(strings.ToLower(text), "-"), "-")
}

func metadataOf(name, service string) map[string]any {
	metadata := map[string]any{"name": name}
	if service != "" {
		metadata["labels"] = labelsOf(service)
	}
	return metadata
}

func labelsOf(service string) map[string]any {
	return map[string]any{"app.kubernetes.io/name": service}
}

// image is the image of a service; one that compose builds has the name of the project and the service.
func (c *composer) image(s types.ServiceConfig) (string, error) {
	if s.Image != "" {
		return s.Image, nil
	}
	image := c.project.Name + "-" + s.Name
	if c.options.Images == nil {
		return "", report.Errorf(report.Invalid, "service %s of %s has no image: compose builds it", s.Name, c.source.Name).
			WithHint("run: docker compose build && docker save --output images.tar IMAGE…, and add: --images images.tar; or write image: into the service")
	}
	var found []string
	for _, available := range c.options.Images { // compose calls the project after its directory
		name := strings.TrimSuffix(available.Origin, ":latest")
		if path.Base(name) == image {
			found = []string{available.Origin}
			break
		}
		if strings.HasSuffix(name, "-"+s.Name) && !c.isOfLongerName(s, name) && !slices.Contains(found, available.Origin) {
			found = append(found, available.Origin)
		}
	}
	if len(found) > 1 {
		return "", report.Errorf(report.Invalid, "service %s of %s is built by compose, and several images have its name: %s", s.Name, c.source.Name, strings.Join(found, ", ")).
			WithHint("write image: into the service")
	}
	image = append(found, image)[0]
	c.remark("service %s is built by compose: its image is %s", s.Name, image)
	return image, nil
}

// isOfLongerName reports whether an image belongs to another service that compose builds, whose name ends in that of s.
func (c *composer) isOfLongerName(s types.ServiceConfig, image string) bool {
	for name, other := range c.project.Services {
		if other.Image == "" && strings.HasSuffix(name, "-"+s.Name) && strings.HasSuffix(image, "-"+name) {
			return true
		}
	}
	return false
}

// escaped keeps Kubernetes from replacing $(NAME), which compose does not know, and $$.
func escaped(text string) string {
	if strings.Contains(text, "$$") || strings.Contains(text, "$(") {
		return strings.ReplaceAll(text, "$", "$$")
	}
	return text
}

func escapedList(list []string) []any {
	var all []any
	for _, text := range list {
		all = append(all, escaped(text))
	}
	return all
}

// environment lists the variables of a service: those of its files, then its own.
func (c *composer) environment(s types.ServiceConfig) ([]any, error) {
	values := map[string]string{}
	for _, file := range s.EnvFiles {
		more, err := c.environmentFile(file.Path, c.project.Environment)
		if errors.Is(err, fs.ErrNotExist) && !file.Required {
			continue
		}
		if err != nil {
			return nil, report.Errorf(report.Invalid, "service %s of %s: env_file: %w", s.Name, c.source.Name, err).WithHint("create the file, or take it out of env_file")
		}
		maps.Copy(values, more)
	}
	for _, key := range sortedKeys(s.Environment) {
		value := s.Environment[key]
		if value == nil {
			if known, ok := c.variable(key); ok {
				value = &known
			} else {
				c.remark("service %s takes variable %s from the shell, and goes without it: set it in .env", s.Name, key)
				continue
			}
		}
		values[key] = *value
	}
	var list []any
	for _, key := range sortedKeys(values) {
		list = append(list, map[string]any{"name": key, "value": escaped(values[key])})
		if isSecretName(key) && values[key] != "" {
			c.remark("variable %s of service %s is in the manifests for everybody to read: a Secret of the site is better", key, s.Name)
		}
	}
	return list, nil
}

func isSecretName(name string) bool {
	upper := strings.ToUpper(name)
	return !strings.HasSuffix(upper, "_FILE") && slices.ContainsFunc([]string{"PASSWORD", "PASSWD", "SECRET", "TOKEN"}, func(word string) bool { return strings.Contains(upper, word) })
}
