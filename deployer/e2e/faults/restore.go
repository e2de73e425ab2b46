//go:build linux

package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// rebuild makes a base, out of whatever there is.
func (l *Lane) rebuild(ctx context.Context, to base) error {
	l.base = unknown
	// What cannot be restored is made again.
	if restored, err := l.restore(ctx, to); err == nil && restored {
		return nil
	}
	if err := l.wipe(ctx); err != nil {
		return fmt.Errorf("wipe: %w", err)
	}
	steps := [][][]string{
		imported:     {{"deploy", "import", archiveOf(oldest), archiveOf(newest)}},
		activeOld:    {{"deploy", "activate", solution, oldest}},
		activeNew:    {{"deploy", "activate", solution, newest}},
		activeBroken: {{"deploy", "import", archiveOf(broken)}, {"deploy", "activate", solution, broken}},
	}
	for at := imported; at <= to; at++ {
		for _, args := range steps[at] {
			if err := l.must(ctx, args...); err != nil {
				return err
			}
		}
	}
	list, err := l.client.Resource(secretResource).Namespace(systemNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	l.secrets = map[string]bool{}
	for _, secret := range list.Items {
		l.secrets[secret.GetName()] = true
	}
	l.base = to
	return l.remember(ctx)
}

// wipe removes everything of ours from cluster and host, not with the program, which may be wrong.
func (l *Lane) wipe(ctx context.Context) error {
	var err error
	for _, name := range hostDirectories {
		err = errors.Join(err, os.RemoveAll(filepath.Join(l.dir, name)))
	}
	if err != nil {
		return err
	}
	definitions, err := l.client.Resource(definitionResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, object := range definitions.Items {
		if err = l.client.Resource(definitionResource).Delete(ctx, object.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	for _, object := range definitions.Items {
		if err = l.gone(ctx, definitionResource, object.GetName()); err != nil {
			return err
		}
	}
	for _, resource := range []schema.GroupVersionResource{secretResource, configMapResource} {
		if err = l.deleteAll(ctx, resource, func(string) bool { return false }); err != nil {
			return err
		}
	}
	err = l.client.Resource(configMapResource).Namespace(sharedNamespace).Delete(ctx, "metalk8s-solutions", metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// snapshot has the content of a base: objects of the cluster, and a copy of the directories of the host.
type snapshot struct {
	objects map[place]map[string]*unstructured.Unstructured
	dir     string
	secrets map[string]bool
	dump    dump
	proven  bool // it was restored once, and cluster and host were the same then
}

// place is a kind of objects in a namespace.
type place struct {
	resource  schema.GroupVersionResource
	namespace string
}

var definitions = place{resource: definitionResource}

// kept is where a base has objects.
var kept = []place{
	definitions, {secretResource, systemNamespace}, {configMapResource, systemNamespace}, {configMapResource, sharedNamespace},
}

var hostDirectories = []string{"store", "metalk8s", "conf.d"}

func (l *Lane) live(ctx context.Context, at place) (map[string]*unstructured.Unstructured, error) {
	list, err := l.client.Resource(at.resource).Namespace(at.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	objects := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		objects[list.Items[i].GetName()] = &list.Items[i]
	}
	return objects, nil
}

// remember notes the base that there is.
func (l *Lane) remember(ctx context.Context) error {
	s := &snapshot{objects: map[place]map[string]*unstructured.Unstructured{}, secrets: l.secrets}
	var err error
	if s.dump, err = l.dump(ctx); err != nil {
		return err
	}
	for _, at := range kept {
		if s.objects[at], err = l.live(ctx, at); err != nil {
			return err
		}
	}
	s.dir = filepath.Join(l.dir, "bases", fmt.Sprint(l.base))
	if err := os.RemoveAll(s.dir); err != nil {
		return err
	}
	if err := copyDirectories(ctx, l.dir, s.dir); err != nil {
		return err
	}
	l.bases[l.base] = s
	return nil
}

// restore brings a base back, object by object: that is several times faster than to make it again. It returns false when that is
// not possible: a definition with another identity is another one.
func (l *Lane) restore(ctx context.Context, to base) (bool, error) {
	s := l.bases[to]
	if s == nil {
		return false, nil
	}
	now, err := l.live(ctx, definitions)
	if err != nil {
		return false, err
	}
	for name, want := range s.objects[definitions] {
		if is := now[name]; is == nil || is.GetUID() != want.GetUID() || is.GetDeletionTimestamp() != nil {
			return false, nil
		}
	}
	for _, at := range kept {
		if ok, err := l.restoreObjects(ctx, at, s.objects[at]); err != nil || !ok {
			return false, err
		}
	}
	for _, name := range hostDirectories {
		if err := os.RemoveAll(filepath.Join(l.dir, name)); err != nil {
			return false, err
		}
	}
	if err := copyDirectories(ctx, s.dir, l.dir); err != nil {
		return false, err
	}
	if !s.proven {
		now, err := l.dump(ctx)
		if err != nil {
			return false, err
		}
		if text := s.dump.difference(now); text != "" {
			return false, fmt.Errorf("what was restored differs:\n%s", text)
		}
		s.proven = true
	}
	l.base, l.secrets = to, s.secrets
	return true, nil
}

// restoreObjects makes the objects at a place what they were.
func (l *Lane) restoreObjects(ctx context.Context, at place, want map[string]*unstructured.Unstructured) (bool, error) {
	now, err := l.live(ctx, at)
	if err != nil {
		return false, err
	}
	for name := range now {
		if want[name] != nil {
			continue
		}
		if err := l.client.Resource(at.resource).Namespace(at.namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return false, err
		}
		if at == definitions {
			if err := l.gone(ctx, at.resource, name); err != nil {
				return false, err
			}
		}
	}
	for name, object := range want {
		if ok, err := l.restoreObject(ctx, at, now[name], object); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// restoreObject makes an object what it was, its owners included, and reports whether it did.
func (l *Lane) restoreObject(ctx context.Context, at place, live, object *unstructured.Unstructured) (bool, error) {
	client := l.client.Resource(at.resource).Namespace(at.namespace)
	want, err := normal(object.DeepCopy())
	if err != nil {
		return false, err
	}
	if live == nil {
		created := object.DeepCopy()
		created.SetResourceVersion("")
		created.SetUID("")
		if live, err = client.Create(ctx, created, metav1.CreateOptions{FieldManager: "faults"}); err != nil {
			return false, err
		}
	}
	// A user who changes an object owns the changed fields. An update that changes nothing else takes that back.
	for range 3 {
		now, err := normal(live.DeepCopy())
		if err != nil || now == want {
			return err == nil, err
		}
		updated := object.DeepCopy()
		updated.SetResourceVersion(live.GetResourceVersion())
		updated.SetUID(live.GetUID())
		if live, err = client.Update(ctx, updated, metav1.UpdateOptions{FieldManager: "faults"}); err != nil {
			return false, err
		}
	}
	return false, nil
}

// copyDirectories copies the directories of a host, as far as they are there, with the modes of their files.
func copyDirectories(ctx context.Context, from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, name := range hostDirectories {
		path := filepath.Join(from, name)
		if _, err := os.Stat(path); os.IsNotExist(err) {
			continue
		}
		if out, err := exec.CommandContext(ctx, "cp", "-a", path, to).CombinedOutput(); err != nil {
			return fmt.Errorf("copy %s: %w: %s", path, err, out)
		}
	}
	return nil
}
