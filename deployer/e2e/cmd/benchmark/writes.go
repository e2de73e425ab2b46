//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/solutionctl/solutionctl/deployer/cluster"
)

// rawWrite is a write whose body was made before.
type rawWrite struct {
	method, path, format string
	body                 []byte
}

// Bytes of records as the engine stores them, compressed.
const (
	pendingSize = 600
	contentSize = 1400
	currentSize = 800
)

// writeAlone is the floor of the engine: it sends the same writes, as many at a time, and does nothing else. With records these are also the
// rendered objects and the pending and the current revision of each Solution, before and after its objects.
func writeAlone(ctx context.Context, kubeconfig, dir string, records bool) error {
	c, err := cluster.Connect(cluster.Options{Kubeconfig: kubeconfig, Now: time.Now})
	if err != nil {
		return err
	}
	before, objects, after, err := rawWrites(ctx, c, dir)
	if err != nil {
		return err
	}
	if !records {
		before, after = nil, nil
	}
	namespace := cluster.NewObject(cluster.NamespaceKind, "", cluster.SystemNamespace)
	if _, err := c.Create(ctx, namespace, cluster.WriteOptions{}); err != nil && !errors.Is(err, cluster.ErrExists) {
		return err
	}
	started := time.Now()
	for _, writes := range [][]rawWrite{before, objects, after} {
		if err := sendAll(ctx, kubeconfig, writes); err != nil {
			return err
		}
	}
	t := timings{Apply: time.Since(started).Seconds(), Written: len(before) + len(objects) + len(after)}
	return json.NewEncoder(os.Stdout).Encode(t)
}

// rawWrites returns the writes for the objects of all releases, and those of records before and after them.
func rawWrites(ctx context.Context, c *cluster.Cluster, dir string) (before, objects, after []rawWrite, err error) {
	releases, err := readReleases(dir, "1")
	if err != nil {
		return nil, nil, nil, err
	}
	for _, r := range releases {
		first, last := recordsOf("floor." + r.Namespace + "." + r.Name)
		before, after = append(before, first...), append(after, last)
		for _, object := range r.Objects {
			mapping, err := c.Mapping(ctx, object.GroupVersionKind())
			if err != nil {
				return nil, nil, nil, err
			}
			path := "/apis/" + mapping.Resource.Group + "/" + mapping.Resource.Version
			if mapping.Resource.Group == "" {
				path = "/api/" + mapping.Resource.Version
			}
			if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
				path += "/namespaces/" + object.GetNamespace()
			}
			object = object.DeepCopy()
			object.SetResourceVersion("1") // no object has it: see [cluster.Cluster.Create]
			body, err := object.MarshalJSON()
			if err != nil {
				return nil, nil, nil, err
			}
			objects = append(objects, rawWrite{http.MethodPatch, path + "/" + mapping.Resource.Resource + "/" + object.GetName() + manager, "application/apply-patch+yaml", body})
		}
	}
	return before, objects, after, nil
}

// manager names the engine in a request.
const manager = "?fieldManager=" + cluster.FieldManager

// recordsOf returns the writes for the records of a release, before and after those of its objects.
func recordsOf(name string) (before []rawWrite, after rawWrite) {
	secrets := "/api/v1/namespaces/" + cluster.SystemNamespace + "/secrets"
	return []rawWrite{
		{http.MethodPost, secrets + manager, "application/json", recordOf(name, pendingSize)},
		{http.MethodPost, secrets + manager, "application/json", recordOf(name+".content", contentSize)},
	}, rawWrite{http.MethodPut, secrets + "/" + name + manager, "application/json", recordOf(name, currentSize)}
}

// recordOf is a Secret with as many random bytes.
func recordOf(name string, size int) []byte {
	data := make([]byte, size)
	_, _ = rand.Read(data) // never fails
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":%q,"namespace":%q,"labels":{"solutionctl.io/floor":"true"}},"data":{"data":%q}}`,
		name, cluster.SystemNamespace, base64.StdEncoding.EncodeToString(data))
}

// sendAll sends writes, as many at a time as the engine does, and reads no more of an answer than whether it is one.
func sendAll(ctx context.Context, kubeconfig string, writes []rawWrite) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(cluster.InFlight)
	for _, w := range writes {
		group.Go(func() error {
			r, err := http.NewRequestWithContext(ctx, w.method, strings.TrimSuffix(config.Host, "/")+w.path, bytes.NewReader(w.body))
			if err != nil {
				return err
			}
			r.Header.Set("Content-Type", w.format)
			r.Header.Set("Accept", "application/json")
			r.Header.Set("Accept-Encoding", "identity")
			answer, err := client.Do(r)
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close() // it was only read
			if err == nil && answer.StatusCode >= http.StatusMultipleChoices {
				err = fmt.Errorf("%s %s: %s", w.method, w.path, answer.Status)
			}
			return err
		})
	}
	return group.Wait()
}
