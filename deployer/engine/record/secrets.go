package record

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
)

// Labels of the Secrets of a Store.
const (
	// labelStores is "state" or "content".
	labelStores = "solutionctl.io/stores"
	// labelOwner is the owner of content.
	labelOwner = "solutionctl.io/owner"
)

// newSecret returns a Secret of a Store, with the identity of old if that is not nil.
func newSecret(old *unstructured.Unstructured, name, stores, owner string, parts map[string][]byte) *unstructured.Unstructured {
	secret := cluster.NewObject(cluster.SecretKind, cluster.SystemNamespace, name)
	if old != nil {
		secret.SetUID(old.GetUID())
		secret.SetResourceVersion(old.GetResourceVersion())
	}
	secret.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "solutionctl", labelStores: stores, labelOwner: owner})
	secret.Object["type"] = "solutionctl.io/" + stores
	data := map[string]any{}
	for key, part := range parts {
		data[key] = base64.StdEncoding.EncodeToString(part)
	}
	secret.Object["data"] = data
	return secret
}

// createStored creates a Secret of the Store, and the namespace if it does not exist.
func (r *Store) createStored(ctx context.Context, secret *unstructured.Unstructured, o cluster.WriteOptions) (*unstructured.Unstructured, error) {
	o.Whole = true
	saved, err := r.Cluster.Create(ctx, secret, o)
	if !apierrors.IsNotFound(err) {
		return saved, err
	}
	namespace := cluster.NewObject(cluster.NamespaceKind, "", cluster.SystemNamespace)
	namespace.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "solutionctl"})
	if _, err := r.Cluster.Create(ctx, namespace, cluster.WriteOptions{}); err != nil && !errors.Is(err, cluster.ErrExists) {
		return nil, err
	}
	return r.Cluster.Create(ctx, secret, o)
}

func sameData(a, b *unstructured.Unstructured) bool {
	x, _, _ := unstructured.NestedMap(a.Object, "data")
	y, _, _ := unstructured.NestedMap(b.Object, "data")
	return maps.Equal(x, y)
}

// compressors are pooled, because each has more than a megabyte of tables. The zero value is ready to use.
type compressors struct{ pool sync.Pool }

func (c *compressors) compress(data []byte) []byte {
	var b bytes.Buffer
	w, ok := c.pool.Get().(*gzip.Writer)
	if !ok {
		w = gzip.NewWriter(nil)
	}
	defer c.pool.Put(w)
	w.Reset(&b)
	w.Write(data) //nolint:errcheck // a buffer takes everything
	w.Close()     //nolint:errcheck // a buffer takes everything
	return b.Bytes()
}

// decompressors are pooled: to create one takes longer than to read a small record.
var decompressors sync.Pool

func decompress(data []byte, limit int64) ([]byte, error) {
	r, ok := decompressors.Get().(*gzip.Reader)
	if !ok {
		r = new(gzip.Reader)
	}
	defer decompressors.Put(r)
	if err := r.Reset(bytes.NewReader(data)); err != nil {
		return nil, err
	}
	var plain bytes.Buffer
	const usual = 20 // times as large; the size at the end of the data can be false
	if size := int(binary.LittleEndian.Uint32(data[len(data)-4:])); size <= usual*len(data) {
		plain.Grow(size + bytes.MinRead)
	}
	if _, err := plain.ReadFrom(io.LimitReader(r, limit+1)); err != nil {
		return nil, err
	}
	if int64(plain.Len()) > limit {
		return nil, fmt.Errorf("it is larger than %d MiB", limit>>20)
	}
	return plain.Bytes(), nil
}
