package record

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Store reads and writes the records in one cluster. Several goroutines may use it at once, for different releases.
type Store struct {
	Cluster *cluster.Cluster
	Tool    string // version of solutionctl, for the records

	compressors compressors
}

// State returns the record of a release; a State without Current and Pending if there is none. The error of a record that cannot be
// read is its Damage.
func (r *Store) State(ctx context.Context, key Key) (*State, error) {
	s, err := r.ReadState(ctx, key)
	if err != nil {
		return nil, err
	}
	return s, s.Damage
}

// ReadState is [Store.State], but returns a record that cannot be read with its Damage and no error.
func (r *Store) ReadState(ctx context.Context, key Key) (*State, error) {
	state, err := cluster.Derived(ctx, key.SecretName(), func() (*State, error) {
		secret, err := r.Cluster.Get(ctx, cluster.SecretKind, cluster.SystemNamespace, key.SecretName())
		if err != nil {
			return nil, fmt.Errorf("record of %s: %w", key, err)
		}
		if secret == nil {
			return &State{Key: key}, nil
		}
		return decodeRecord(secret, key), nil
	})
	if err != nil {
		return nil, err
	}
	own := *state // a run replaces its fields
	return &own, nil
}

// States returns all records, sorted by namespace and name. A record that cannot be read is included, with its Damage.
func (r *Store) States(ctx context.Context) ([]*State, error) {
	secrets, err := r.list(ctx)
	if err != nil {
		return nil, err
	}
	states := make([]*State, len(secrets))
	_ = cluster.Each(len(secrets), func(i int) error {
		if states[i] = decodeRecord(secrets[i]); states[i].Damage == nil {
			delete(secrets[i].Object, "data") // only the decoded form is kept
		}
		return nil
	})
	if err := r.placeDamaged(ctx, states); err != nil {
		return nil, err
	}
	slices.SortFunc(states, func(a, b *State) int { return CompareKeys(a.Key, b.Key) })
	return states, nil
}

// ReadAhead reads all records with one list into the cache of the context, see [cluster.WithMemory], for callers that need many.
func (r *Store) ReadAhead(ctx context.Context) error {
	secrets, err := r.list(ctx)
	if err == nil {
		cluster.Remember(ctx, cluster.SecretKind, statePrefix, secrets)
	}
	return err
}

func (r *Store) list(ctx context.Context) ([]*unstructured.Unstructured, error) {
	secrets, err := cluster.Collect(r.Cluster.ListPartial(ctx, cluster.SecretKind, cluster.SystemNamespace, metav1.ListOptions{LabelSelector: labelStores + "=state"}))
	if err != nil {
		return nil, fmt.Errorf("list records: %w", err)
	}
	return secrets, nil
}

// manyStates is the number of records up to which each is read separately; beyond it, all are listed.
const manyStates = 32

// StatesIn returns the records of the releases in namespaces, sorted like [Store.States]. Names of records have a hash of the
// namespace, so no other records are read.
func (r *Store) StatesIn(ctx context.Context, namespaces ...string) ([]*State, error) {
	records, err := cluster.Collect(r.Cluster.ListMetadata(ctx, cluster.SecretKind, cluster.SystemNamespace, metav1.ListOptions{LabelSelector: labelStores + "=state"}))
	if err != nil {
		return nil, fmt.Errorf("list records: %w", err)
	}
	ids := make([]string, len(records))
	for i, record := range records {
		ids[i] = strings.TrimPrefix(record.GetName(), statePrefix)
	}
	keys := slices.Collect(maps.Values(FindKeys(ids, namespaces...)))
	var states []*State
	if len(keys) > manyStates {
		states, err = r.States(ctx)
		return slices.DeleteFunc(states, func(s *State) bool { return !slices.Contains(namespaces, s.Namespace) }), err
	}
	slices.SortFunc(keys, CompareKeys)
	states = make([]*State, len(keys))
	err = cluster.Each(len(keys), func(i int) (err error) {
		states[i], err = r.ReadState(ctx, keys[i])
		return err
	})
	return slices.DeleteFunc(states, func(s *State) bool { return s == nil || s.secret == nil }), err
}

// StatesOf reads records: a few one by one, many with one list.
func (r *Store) StatesOf(ctx context.Context, keys []Key) ([]*State, error) {
	if len(keys) > manyStates {
		ctx = cluster.WithMemory(ctx)
		if err := r.ReadAhead(ctx); err != nil {
			return nil, err
		}
	}
	states := make([]*State, len(keys))
	return states, cluster.Each(len(keys), func(i int) (err error) {
		states[i], err = r.State(ctx, keys[i])
		return err
	})
}

// DeleteRecords deletes the records of releases without objects, with their histories. It fails with the code InUse while a release
// has objects.
func (r *Store) DeleteRecords(ctx context.Context, keys ...Key) error {
	states, err := r.StatesOf(ctx, keys)
	if err != nil {
		return err
	}
	states = slices.DeleteFunc(states, func(s *State) bool { return s.secret == nil })
	var owners []string
	for _, s := range states {
		if left := len(s.Inventory()); left > 0 {
			return report.Errorf(report.InUse, "delete the record of %s: %s still in the cluster", s.Key, report.Count(left, "object"))
		}
		owners = append(owners, s.ID())
	}
	if err := r.collect(ctx, owners); err != nil {
		return err
	}
	return cluster.Each(len(states), func(i int) error {
		if err := r.Cluster.Delete(ctx, states[i].secret, cluster.DeleteOptions{}); err != nil {
			return fmt.Errorf("delete the record of %s: %w", states[i].Key, err)
		}
		return nil
	})
}

// UnknownNamespace stands for the namespace of a record that cannot be read and belongs to no namespace that the user can list. It is not a
// valid name of a namespace.
const UnknownNamespace = "(unknown)"

// placeDamaged finds the namespaces of records that cannot be read, by the hash in their names.
func (r *Store) placeDamaged(ctx context.Context, states []*State) error {
	if !slices.ContainsFunc(states, func(s *State) bool { return s.Damage != nil }) {
		return nil
	}
	namespaces, err := cluster.Collect(r.Cluster.ListMetadata(ctx, cluster.NamespaceKind, "", metav1.ListOptions{}))
	if err != nil && report.CodeOf(err) != report.Forbidden {
		return fmt.Errorf("find the namespace of a damaged record: %w", err)
	}
	names := []string{""}
	for _, namespace := range namespaces {
		names = append(names, namespace.GetName())
	}
	for _, s := range states {
		if s.Damage == nil {
			continue
		}
		var known bool
		if s.Key, known = FindKey(strings.TrimPrefix(s.secret.GetName(), statePrefix), names...); !known {
			s.Namespace = UnknownNamespace
		}
	}
	return nil
}

// ErrStale means that another process has written the record since it was read.
var ErrStale = errors.New("another process has changed the record meanwhile")

// createdSize is how many bytes an object adds to a compressed record when it is created: its UID, which is random, and its resourceVersion.
const createdSize = 32

// checkRoom refuses a pending revision whose record has no room in a Secret: now, when its objects have been created, or when the next revision,
// which can be its removal, lists them beside it. The sizes are the compressed record and the compressed saved options.
func (s *State) checkRoom(size, options int) error {
	if s.Pending == nil {
		return nil
	}
	for _, object := range s.Pending.Objects {
		if object.UID == "" {
			size += createdSize
		}
	}
	if s.Current == nil {
		size *= 2
	}
	if size += options; size <= cluster.MaxData {
		return nil
	}
	return report.Errorf(report.Refused, "the record of %s would have %d KiB with the %d objects of this revision and of the next one, and a Secret can have %d",
		s.Key, size>>10, len(s.Pending.Objects), cluster.MaxData>>10).
		WithHint("its vendor can distribute the objects over several components, each of which has a record of its own")
}

// CheckRoom returns the error with which [Store.Save] would refuse a record as too large, and writes nothing.
func (r *Store) CheckRoom(s *State) error {
	_, err := r.encode(s)
	return err
}

// encode returns the data of the Secret.
func (r *Store) encode(s *State) (map[string][]byte, error) {
	data, err := s.document(r.Tool)
	if err != nil {
		return nil, fmt.Errorf("record of %s: %w", s.Key, err)
	}
	parts := map[string][]byte{stateKey: r.compressors.compress(data)}
	if len(s.SavedOptions) > 0 && s.Pending != nil {
		parts[savedOptionsKey] = r.compressors.compress(s.SavedOptions)
		if len(parts[savedOptionsKey]) > maxSavedOptions {
			return nil, report.Errorf(report.Refused, "the values of %s are too large to store: %d KiB compressed, the limit is %d", s.Key, len(parts[savedOptionsKey])>>10, maxSavedOptions>>10).
				WithHint("shorten the values of this run; a large file can be a ConfigMap of the site that the values name")
		}
	}
	return parts, s.checkRoom(len(parts[stateKey]), len(parts[savedOptionsKey]))
}

// Save writes the record in place of the one that was read; a damaged one is deleted first. The error is ErrStale if the record has changed
// since, unless the cluster has exactly the record to write: then an earlier attempt succeeded, and its answer was lost.
func (r *Store) Save(ctx context.Context, s *State) error {
	parts, err := r.encode(s)
	if err != nil {
		return err
	}
	if s.Damage != nil && s.secret != nil {
		// It may have another type by now, or be immutable.
		if err = r.Cluster.Delete(ctx, s.secret, cluster.DeleteOptions{}); err != nil {
			return fmt.Errorf("record of %s: %w", s.Key, err)
		}
		s.secret = nil
	}
	secret := newSecret(s.secret, s.SecretName(), "state", s.ID(), parts)
	var saved *unstructured.Unstructured
	if s.secret == nil {
		saved, err = r.createStored(ctx, secret, cluster.WriteOptions{})
	} else {
		saved, err = r.Cluster.Update(ctx, secret, cluster.WriteOptions{})
	}
	if errors.Is(err, cluster.ErrExists) || errors.Is(err, cluster.ErrChanged) {
		saved, err = r.Cluster.Get(ctx, cluster.SecretKind, cluster.SystemNamespace, s.SecretName())
		if err == nil && (saved == nil || !sameData(saved, secret)) {
			err = ErrStale
		}
	}
	if err != nil {
		return fmt.Errorf("record of %s: %w", s.Key, err)
	}
	s.secret = saved
	return nil
}
