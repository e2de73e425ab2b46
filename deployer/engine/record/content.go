package record

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	contentKey = "content.gz"
	// partSize limits the data in one Secret: the server refuses objects over 1 MiB, not counting base64.
	partSize = 900 << 10
	// maxContent limits the size of one content, uncompressed.
	maxContent = 64 << 20
	// annotationParts is the number of parts of a content, on its first part.
	annotationParts = "solutionctl.io/parts"
	// annotationDigest is on every part of a content.
	annotationDigest = "solutionctl.io/digest"
)

// StoreContent stores data in the cluster under its digest ("sha256:…"). The owner is a label value for [Store.CollectContent].
// Storing the same data again repairs parts that have been changed, and does nothing otherwise. At most 64 MiB are accepted.
func (r *Store) StoreContent(ctx context.Context, owner string, data []byte) (digest string, err error) {
	digest = DigestOf(data)
	if err = CheckSize(data); err != nil {
		return "", err
	}
	stored, err := r.storeParts(ctx, owner, digest, data)
	if err != nil || stored {
		return digest, err
	}
	if _, err = r.LoadContent(ctx, owner, digest); report.CodeOf(err) != report.Corrupt {
		return digest, err
	}
	// It has been changed, and its parts are immutable.
	if err = r.DropContent(ctx, owner, digest); err == nil {
		_, err = r.storeParts(ctx, owner, digest, data)
	}
	return digest, err
}

// storeParts creates the parts that do not exist; stored reports whether none of them existed.
func (r *Store) storeParts(ctx context.Context, owner, digest string, data []byte) (stored bool, err error) {
	stored = true
	// The first part comes last: if it exists, all of them do.
	for _, secret := range slices.Backward(partsOf(owner, digest, r.compressors.compress(data))) {
		_, err := r.createStored(ctx, secret, cluster.WriteOptions{Unread: true})
		if errors.Is(err, cluster.ErrExists) {
			stored = false
		} else if err != nil {
			return false, fmt.Errorf("store content in the cluster: %w", err)
		}
	}
	return stored, nil
}

// partsOf returns the Secrets for compressed content.
func partsOf(owner, digest string, packed []byte) []*unstructured.Unstructured {
	parts := slices.Collect(slices.Chunk(packed, partSize))
	secrets := make([]*unstructured.Unstructured, len(parts))
	for i, part := range parts {
		secret := newSecret(nil, contentName(owner, digest, i), "content", owner, map[string][]byte{contentKey: part})
		annotations := map[string]string{annotationDigest: digest}
		if i == 0 {
			annotations[annotationParts] = strconv.Itoa(len(parts))
		}
		secret.SetAnnotations(annotations)
		secret.Object["immutable"] = true
		secrets[i] = secret
	}
	return secrets
}

// Stored reports whether a Secret in [cluster.SystemNamespace] is a record or content.
func Stored(secret *unstructured.Unstructured) bool {
	return slices.Contains([]string{"state", "content"}, secret.GetLabels()[labelStores])
}

// CheckSize returns an error if data is too large to be stored in the cluster.
func CheckSize(data []byte) error {
	if len(data) > maxContent {
		return report.Errorf(report.Refused, "content of %d bytes is too large to store in the cluster; the limit is %d MiB", len(data), maxContent>>20)
	}
	return nil
}

// LoadContent returns stored content. The error has the code NotFound if it does not exist, and Corrupt if it does not match the
// digest.
func (r *Store) LoadContent(ctx context.Context, owner, digest string) ([]byte, error) {
	var packed bytes.Buffer
	for i, parts := 0, 1; i < parts; i++ {
		name := contentName(owner, digest, i)
		secret, err := r.Cluster.Get(ctx, cluster.SecretKind, cluster.SystemNamespace, name)
		if err != nil {
			return nil, err
		}
		if secret == nil {
			return nil, report.Errorf(report.NotFound, "Secret %s/%s with the content does not exist", cluster.SystemNamespace, name)
		}
		if i == 0 {
			if parts, err = strconv.Atoi(secret.GetAnnotations()[annotationParts]); err != nil || parts > maxContent/partSize+1 {
				return nil, corruptContent(digest, fmt.Errorf("annotation %s: %q", annotationParts, secret.GetAnnotations()[annotationParts]))
			}
		}
		part, err := cluster.SecretData(secret, contentKey)
		if err != nil {
			return nil, corruptContent(digest, err)
		}
		packed.Write(part)
	}
	data, err := decompress(packed.Bytes(), maxContent)
	if err != nil {
		return nil, corruptContent(digest, err)
	}
	if got := DigestOf(data); got != digest {
		return nil, corruptContent(digest, fmt.Errorf("it has digest %s", got))
	}
	return data, nil
}

func corruptContent(digest string, err error) error {
	return report.Errorf(report.Corrupt, "content %s in namespace %s: %w", digest, cluster.SystemNamespace, err)
}

// CollectContent deletes the content of an owner, except the digests to keep. The caller holds the lock that protects the
// owner's references.
func (r *Store) CollectContent(ctx context.Context, owner string, keep ...string) error {
	return r.collect(ctx, []string{owner}, keep...)
}

// manyOwners limits the length of one label selector.
const manyOwners = 50

func (r *Store) collect(ctx context.Context, owners []string, keep ...string) error {
	// The first part is deleted first: without it the others are ignored.
	var first, others []*unstructured.Unstructured
	for some := range slices.Chunk(owners, manyOwners) {
		stored, err := cluster.Collect(r.Cluster.ListMetadata(ctx, cluster.SecretKind, cluster.SystemNamespace, metav1.ListOptions{LabelSelector: labelStores + "=content," + labelOwner + " in (" + strings.Join(some, ",") + ")"}))
		if err != nil {
			return fmt.Errorf("content that nothing refers to: %w", err)
		}
		for _, secret := range stored {
			switch annotations := secret.GetAnnotations(); {
			case slices.Contains(keep, annotations[annotationDigest]):
			case annotations[annotationParts] != "":
				first = append(first, secret)
			default:
				others = append(others, secret)
			}
		}
	}
	for _, garbage := range [][]*unstructured.Unstructured{first, others} {
		if err := cluster.Each(len(garbage), func(i int) error { return r.dropPart(ctx, garbage[i]) }); err != nil {
			return err
		}
	}
	return nil
}

// DropContent deletes one content without a list of everything that is stored.
func (r *Store) DropContent(ctx context.Context, owner, digest string) error {
	for i, parts := 0, 1; i < parts; i++ {
		secret, err := r.Cluster.GetMetadata(ctx, cluster.SecretKind, cluster.SystemNamespace, contentName(owner, digest, i))
		if err != nil {
			return fmt.Errorf("content that nothing refers to: %w", err)
		}
		if secret == nil {
			continue
		}
		if n, err := strconv.Atoi(secret.GetAnnotations()[annotationParts]); i == 0 && err == nil {
			parts = min(n, maxContent/partSize+1)
		}
		if err := r.dropPart(ctx, secret); err != nil {
			return err
		}
	}
	return nil
}

func (r *Store) dropPart(ctx context.Context, secret *unstructured.Unstructured) error {
	if err := r.Cluster.Delete(ctx, secret, cluster.DeleteOptions{}); err != nil && !errors.Is(err, cluster.ErrChanged) {
		return fmt.Errorf("content that nothing refers to: %w", err)
	}
	return nil
}

// contentName returns the name of the Secret of a part. Names of the same content sort in the order of its parts.
func contentName(owner, digest string, part int) string {
	name := "content." + owner + "." + strings.TrimPrefix(digest, "sha256:")
	if part > 0 {
		name += fmt.Sprintf(".%03d", part)
	}
	return name
}

// DigestOf returns the digest under which content is stored.
func DigestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
