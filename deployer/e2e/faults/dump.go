//go:build linux

package faults

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/loader"
	solutionschema "github.com/solutionctl/solutionctl/schema"
)

// dump is everything that a cluster and a host have, without what is different each time. Values are JSON or digests.
type dump map[string]string

// transient are resources that controllers make and remove on their own.
var transient = map[string]bool{
	"events": true, "endpoints": true, "endpointslices": true, "pods": true, "replicasets": true, "controllerrevisions": true,
	"leases": true, "nodes": true, "csinodes": true, "apiservices": true, "componentstatuses": true, "ipaddresses": true,
}

// loaderProgress is the file in which the loader reports its progress.
var loaderProgress = filepath.Join("configmaps", systemNamespace, loader.ProgressName)

// noteBuiltIn notes which resources there are, and what the cluster has from the start.
func (l *Lane) noteBuiltIn(ctx context.Context) error {
	lists, err := l.cluster.Client().Discovery().ServerPreferredResources()
	if err != nil {
		return err
	}
	for _, list := range lists {
		var version schema.GroupVersion
		if version, err = schema.ParseGroupVersion(list.GroupVersion); err != nil {
			return err
		}
		for _, resource := range list.APIResources {
			if slices.Contains(resource.Verbs, "list") && !transient[resource.Name] {
				l.resources = append(l.resources, version.WithResource(resource.Name))
			}
		}
	}
	l.builtIn = map[string]bool{}
	now, err := l.dumpCluster(ctx)
	for name := range now {
		l.builtIn[name] = true
	}
	return err
}

// dump reads cluster and host.
func (l *Lane) dump(ctx context.Context) (dump, error) {
	d, err := l.dumpCluster(ctx)
	if err != nil {
		return nil, err
	}
	d = l.anonymous(d)
	return d, l.dumpFiles(d)
}

// abandoned reports whether an object belongs to the environment of an earlier run.
func (l *Lane) abandoned(object *unstructured.Unstructured) bool {
	namespace := object.GetNamespace()
	if object.GetKind() == "Namespace" {
		namespace = object.GetName()
	}
	return strings.HasPrefix(namespace, environments) && namespace != l.environment
}

// anonymous replaces the name of the environment, and names and digests that follow from it.
func (l *Lane) anonymous(d dump) dump {
	names := []string{record.Key{Namespace: l.environment, Name: solution}.ID(), "$RELEASE"}
	for _, component := range []string{"first", "second", "third", charted} {
		names = append(names, record.Key{Namespace: l.environment, Name: solution, Component: component}.ID(), "$RELEASE-"+component)
	}
	names = append(names, l.environment, "$ENVIRONMENT")
	first := strings.NewReplacer(names...)
	// Nothing is stored for each that is removed, under one digest.
	byName := func(a, b string) int { return strings.Compare(first.Replace(a), first.Replace(b)) }
	for _, name := range slices.SortedFunc(maps.Keys(d), byName) {
		digest, ok := strings.CutPrefix(filepath.Ext(name), ".")
		if ok && strings.HasPrefix(name, "secrets/"+systemNamespace+"/content.") && !slices.Contains(names, digest) {
			text := strings.ReplaceAll(first.Replace(d[name]), digest, "")
			names = append(names, digest, fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16])
		}
	}
	all, result := strings.NewReplacer(names...), dump{}
	for name, text := range d {
		text = ownerKey.ReplaceAllString(podName.ReplaceAllString(all.Replace(text), "$$POD"), "$$OWNER")
		text = adoptedHelm.ReplaceAllString(text, "$1$$SECRET")
		result[runName.ReplaceAllString(all.Replace(name), "loader-$$RUN")] = runName.ReplaceAllString(text, "loader-$$RUN")
	}
	return result
}

// podName is the name of a Deployment's pod, as quoted by a record with the reason of a failure.
var podName = regexp.MustCompile(`\b[a-z0-9-]+-[a-f0-9]{8,10}-[a-z0-9]{5}\b`)

// ownerKey is how the list of those who own fields names the owner of an object.
var ownerKey = regexp.MustCompile(`k:\{\\"uid\\":\\"[0-9a-f-]+\\"\}`)

// runName is the beginning of the names of a loader run's objects: the remaining commands name the run.
var runName = regexp.MustCompile(`\bloader-[a-f0-9]{10}\b`)

func (l *Lane) dumpCluster(ctx context.Context) (dump, error) {
	d := dump{}
	l.ours = nil
	resources := slices.Clone(l.resources)
	definitions, err := l.client.Resource(definitionResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, definition := range definitions.Items {
		kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
		resources = append(resources, resourceOf(kind))
	}
	for _, resource := range resources {
		list, err := l.client.Resource(resource).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue // its definition is going
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", resource.Resource, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			if l.abandoned(object) {
				continue
			}
			name := filepath.Join(resource.Resource, object.GetNamespace(), object.GetName())
			if l.builtIn[name] || object.GetName() == "kube-root-ca.crt" || resource.Resource == "serviceaccounts" && object.GetName() == "default" {
				continue
			}
			if release := object.GetLabels()[solutionschema.LabelRelease]; release != "" {
				l.ours = append(l.ours, release+" "+object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName())
			}
			if name == loaderProgress { // all else in it is about one run
				d[name], _, err = unstructured.NestedString(object.Object, "data", "phase")
				if err != nil {
					return nil, err
				}
				continue
			}
			if d[name], err = normal(object); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return d, nil
}

// normal is an object without what is different each time.
func normal(object *unstructured.Unstructured) (string, error) {
	managers := slices.DeleteFunc(object.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return m.Subresource != "" || strings.HasPrefix(m.Manager, "kube-")
	})
	for i := range managers {
		managers[i].Time = nil
	}
	slices.SortFunc(managers, func(a, b metav1.ManagedFieldsEntry) int {
		return strings.Compare(a.Manager+string(a.Operation), b.Manager+string(b.Operation))
	})
	object.SetManagedFields(managers)
	stored, found, _ := unstructured.NestedStringSlice(object.Object, "status", "storedVersions")
	delete(object.Object, "status")
	if found {
		_ = unstructured.SetNestedStringSlice(object.Object, stored, "status", "storedVersions") // there is no status
	}
	for _, field := range [][]string{
		{"metadata", "annotations", "deployment.kubernetes.io/revision"},
		{"spec", "clusterIP"},
		{"spec", "clusterIPs"},
		{"metadata", "creationTimestamp"},
	} {
		unstructured.RemoveNestedField(object.Object, field...)
	}
	if data, ok := object.Object["data"].(map[string]any); ok {
		for key, value := range data {
			text, err := plain(object.GetKind(), key, fmt.Sprint(value))
			if err != nil {
				return "", err
			}
			data[key] = text
		}
	}
	scrub(object.Object)
	text, err := json.MarshalIndent(object.Object, "", " ")
	return string(text), err
}

// plain returns the documents in a ConfigMap or a Secret without the values that differ each time.
func plain(kind, key, value string) (any, error) {
	data := []byte(value)
	if kind == "Secret" {
		var err error
		if data, err = base64.StdEncoding.DecodeString(value); err != nil {
			return nil, err
		}
	}
	if strings.HasSuffix(key, ".gz") {
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		if data, err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
	return document(data), nil
}

func document(data []byte) any {
	var document any
	if json.Unmarshal(data, &document) == nil {
		return document
	}
	return string(data)
}

// changing are fields of objects and documents that are different each time.
var changing = map[string]bool{
	"uid": true, "resourceVersion": true, "generation": true, "token": true, "started": true, "finished": true, "importedAt": true, "ca": true, "hash": true,
	"verifiedAt": true, "signedAt": true, "seenAt": true, "created": true, "time": true,
	"run": true, loader.LabelRun: true, loader.LabelJob: true, "solutionctl.io/content": true, engine.AnnotationRun: true, "controller-uid": true, "batch.kubernetes.io/controller-uid": true,
}

// scrub replaces the values of changing fields by a star. Whether they are there counts.
func scrub(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if changing[key] {
				value[key] = "*"
			} else {
				scrub(inner)
			}
		}
	case []any:
		for _, inner := range value {
			scrub(inner)
		}
	}
}

// dumpFiles adds the files that the program has written.
func (l *Lane) dumpFiles(d dump) error {
	for _, top := range []string{"store", "metalk8s", "conf.d", "node"} {
		err := filepath.WalkDir(filepath.Join(l.dir, top), func(path string, entry fs.DirEntry, err error) error {
			if os.IsNotExist(err) {
				return nil
			}
			if err != nil {
				return err
			}
			name, err := filepath.Rel(l.dir, path)
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			text, err := contentOf(path, info)
			d["file "+name] = fmt.Sprintf("%s\n%s", info.Mode(), text)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// contentOf describes what a file holds; not keys and certificates, which are new each time.
func contentOf(path string, info fs.FileInfo) (string, error) {
	if !info.Mode().IsRegular() || strings.Contains(path, "/tls/") {
		return "", nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if filepath.Ext(path) != ".json" {
		return fmt.Sprintf("sha256:%x", sha256.Sum256(data)), nil
	}
	content := document(data)
	scrub(content)
	text, err := json.MarshalIndent(content, "", " ")
	return string(text), err
}

// difference reports how two dumps differ, "" when they do not.
func (d dump) difference(got dump) string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(d)) {
		switch text, ok := got[name]; {
		case !ok:
			lines = append(lines, "- "+name+" is missing")
		case text != d[name]:
			lines = append(lines, "~ "+name+"\n"+changedLines(d[name], text))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := d[name]; !ok {
			lines = append(lines, "+ "+name+" is left over")
		}
	}
	return strings.Join(lines, "\n")
}

// changedLines shows the lines in which two texts differ.
func changedLines(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	const most = 12
	var lines []string
	for _, line := range a[:min(most, len(a))] {
		lines = append(lines, "    want "+line)
	}
	for _, line := range b[:min(most, len(b))] {
		lines = append(lines, "    got  "+line)
	}
	return strings.Join(lines, "\n")
}
