package engine

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// LabelRelease is on every object of a release and names it, see [Key.ID].
const LabelRelease = schema.LabelRelease

const (
	stateKey        = "state.json.gz"
	savedOptionsKey = "given.gz"
	historyLimit    = 5
	maxState        = 64 << 20  // size of a record, uncompressed
	maxSavedOptions = 512 << 10 // size of the saved options, compressed: both are in one Secret
)

// ID returns the value of [LabelRelease] on the objects of this key. It is part of the name of its record.
func (k Key) ID() string {
	text := k.Namespace + "\x00" + k.Name
	if k.Component != "" {
		text += "\x00" + k.Component
	}
	sum := sha256.Sum256([]byte(text))
	return k.Label() + "." + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:5]))
}

// statePrefix begins the names of all records.
const statePrefix = "state."

func (k Key) secretName() string { return statePrefix + k.ID() }

// RecordName returns the name of the Secret with the record of a release.
func RecordName(k Key) string { return k.secretName() }

// Secret returns the name of the Secret that was read; "" if there is none.
func (s *State) Secret() string {
	if s.secret == nil {
		return ""
	}
	return s.secret.GetName()
}

// State is the record of a release.
type State struct {
	Key
	Current   *schema.DeploymentRevision  // the last completed one, nil if there is none
	Pending   *schema.DeploymentRevision  // the one that was started and is not complete, nil if there is none
	History   []schema.DeploymentRevision // earlier ones without their objects, newest first
	Approvals []schema.PowerApproval      // newest first
	// SavedOptions belong to the pending [Release]; nil if there is none.
	SavedOptions []byte
	// Damage is why the record cannot be read. Then only the key is known, and whether objects exist is not.
	Damage error

	secret *unstructured.Unstructured // as it was read, nil if there is none
}

// Recent returns the pending and the current revision, as far as they exist.
func (s *State) Recent() []*schema.DeploymentRevision {
	return slices.DeleteFunc([]*schema.DeploymentRevision{s.Pending, s.Current}, func(r *schema.DeploymentRevision) bool { return r == nil })
}

// Revisions returns all recorded revisions, newest first.
func (s *State) Revisions() []*schema.DeploymentRevision {
	all := s.Recent()
	for i := range s.History {
		all = append(all, &s.History[i])
	}
	return all
}

// State returns the record of a release; a State without Current and Pending if there is none. The error of a record that cannot be
// read is its Damage.
func (e *Engine) State(ctx context.Context, key Key) (*State, error) {
	s, err := e.ReadState(ctx, key)
	if err != nil {
		return nil, err
	}
	return s, s.Damage
}

// ReadState is [Engine.State], but returns a record that cannot be read with its Damage and no error.
func (e *Engine) ReadState(ctx context.Context, key Key) (*State, error) {
	secret, err := e.Cluster.Get(ctx, cluster.SecretKind, cluster.SystemNamespace, key.secretName())
	if err != nil {
		return nil, fmt.Errorf("record of %s: %w", key, err)
	}
	if secret == nil {
		return &State{Key: key}, nil
	}
	return decodeRecord(secret, key), nil
}

// States returns all records, sorted by namespace and name. A record that cannot be read is included, with its Damage.
func (e *Engine) States(ctx context.Context) ([]*State, error) {
	var secrets []*unstructured.Unstructured
	for secret, err := range e.Cluster.List(ctx, cluster.SecretKind, cluster.SystemNamespace, metav1.ListOptions{LabelSelector: labelStores + "=state"}) {
		if err != nil {
			return nil, fmt.Errorf("list records: %w", err)
		}
		secrets = append(secrets, secret)
	}
	states := make([]*State, len(secrets))
	_ = each(len(secrets), true, func(i int) error {
		if states[i] = decodeRecord(secrets[i]); states[i].Damage == nil {
			delete(secrets[i].Object, "data") // only the decoded form is kept
		}
		return nil
	})
	if err := e.placeDamaged(ctx, states); err != nil {
		return nil, err
	}
	slices.SortFunc(states, func(a, b *State) int { return CompareKeys(a.Key, b.Key) })
	return states, nil
}

// ReadAhead reads all records with one list into the cache of the context, see [cluster.WithMemory], for callers that need many.
func (e *Engine) ReadAhead(ctx context.Context) error {
	var secrets []*unstructured.Unstructured
	for secret, err := range e.Cluster.List(ctx, cluster.SecretKind, cluster.SystemNamespace, metav1.ListOptions{LabelSelector: labelStores + "=state"}) {
		if err != nil {
			return fmt.Errorf("list records: %w", err)
		}
		secrets = append(secrets, secret)
	}
	cluster.Remember(ctx, cluster.SecretKind, statePrefix, secrets)
	return nil
}

// manyStates is the number of records up to which each is read separately; beyond it, all are listed.
const manyStates = 32

// StatesIn returns the records of the releases in namespaces, sorted like [Engine.States]. Names of records have a hash of the
// namespace, so no other records are read.
func (e *Engine) StatesIn(ctx context.Context, namespaces ...string) ([]*State, error) {
	records, err := e.listMetadata(ctx, cluster.SecretKind, cluster.SystemNamespace, labelStores+"=state")
	if err != nil {
		return nil, fmt.Errorf("list records: %w", err)
	}
	var keys []Key
	for _, record := range records {
		if key, ok := keyOfID(strings.TrimPrefix(record.GetName(), statePrefix), namespaces...); ok {
			keys = append(keys, key)
		}
	}
	var states []*State
	if len(keys) > manyStates {
		states, err = e.States(ctx)
		return slices.DeleteFunc(states, func(s *State) bool { return !slices.Contains(namespaces, s.Namespace) }), err
	}
	slices.SortFunc(keys, CompareKeys)
	states = make([]*State, len(keys))
	err = each(len(keys), true, func(i int) (err error) {
		states[i], err = e.ReadState(ctx, keys[i])
		return err
	})
	return slices.DeleteFunc(states, func(s *State) bool { return s == nil || s.secret == nil }), err
}

// DeleteRecords deletes the records of releases without objects, with their histories. It fails with the code InUse while a release
// has objects.
func (e *Engine) DeleteRecords(ctx context.Context, keys ...Key) error {
	states, err := e.statesOf(ctx, keys)
	if err != nil {
		return err
	}
	states = slices.DeleteFunc(states, func(s *State) bool { return s.secret == nil })
	var owners []string
	for _, s := range states {
		if left := len(s.inventory()); left > 0 {
			return report.Errorf(report.InUse, "delete the record of %s: %s still in the cluster", s.Key, report.Count(left, "object"))
		}
		owners = append(owners, s.ID())
	}
	if err := e.collect(ctx, owners); err != nil {
		return err
	}
	return each(len(states), true, func(i int) error {
		if err := e.Cluster.Delete(ctx, states[i].secret, cluster.DeleteOptions{}); err != nil {
			return fmt.Errorf("delete the record of %s: %w", states[i].Key, err)
		}
		return nil
	})
}

// Objects returns the objects of a revision as they were rendered, for a rollback to it.
func (e *Engine) Objects(ctx context.Context, key Key, r *schema.DeploymentRevision) ([]*unstructured.Unstructured, error) {
	content, err := e.Content(ctx, key, r)
	if err != nil {
		return nil, err
	}
	return content.Objects, nil
}

// Content returns the content of a revision, for a rollback to it.
func (e *Engine) Content(ctx context.Context, key Key, r *schema.DeploymentRevision) (*Content, error) {
	data, err := e.LoadContent(ctx, key.ID(), r.Content)
	if code := report.CodeOf(err); code == report.NotFound || code == report.Corrupt {
		return nil, report.Errorf(report.Corrupt, "objects of %s, revision %d: %w", key, r.Number, err).
			WithHint("rebuild the record from the objects in the cluster: %s", report.Run("deploy repair").With("records"))
	}
	if err != nil {
		return nil, fmt.Errorf("objects of %s, revision %d: %w", key, r.Number, err)
	}
	return decodeContent(data)
}

// inventory returns the objects of the last completed revision and of the pending one, each once. The newer entry counts, except that
// a known UID is kept.
func (s *State) inventory() map[objectKey]schema.DeployedObject {
	all := map[objectKey]schema.DeployedObject{}
	for _, revision := range slices.Backward(s.Recent()) {
		for _, object := range revision.Objects {
			key := keyOfRef(object.ObjectRef)
			if object.UID == "" {
				object.UID = all[key].UID
			}
			all[key] = object
		}
	}
	return all
}

// decodeRecord decodes a record. Its content must match its name, and one of the keys if there are any.
func decodeRecord(secret *unstructured.Unstructured, keys ...Key) *State {
	where := "Secret " + secret.GetNamespace() + "/" + secret.GetName()
	d, err := decodeState(secret, where)
	var saved []byte
	if err == nil && d.Pending != nil {
		saved, err = decodeSavedOptions(secret, where)
	}
	if err == nil {
		s := &State{
			Key: Key{d.Namespace, d.Solution, d.Component}, Current: d.Current, Pending: d.Pending, History: d.History, Approvals: d.Approvals, SavedOptions: saved,
			secret: secret,
		}
		if s.secretName() == secret.GetName() {
			return s
		}
		err = report.Errorf(report.Corrupt, "%s is the record of %s, but has another name", where, s.Key)
	}
	if report.CodeOf(err) == report.Corrupt {
		err = report.As(report.Corrupt, err).WithHint("rebuild the record from the objects in the cluster: %s", report.Run("deploy repair").With("records"))
	}
	s := &State{Damage: err, secret: secret}
	s.Key, _ = keyOfID(strings.TrimPrefix(secret.GetName(), statePrefix))
	if len(keys) > 0 {
		s.Key = keys[0]
	}
	return s
}

func decodeState(secret *unstructured.Unstructured, where string) (*schema.DeploymentState, error) {
	packed, err := cluster.SecretData(secret, stateKey)
	if err != nil {
		return nil, report.Errorf(report.Corrupt, "%s: %w", where, err)
	}
	data, err := decompress(packed, maxState)
	if err != nil {
		return nil, report.Errorf(report.Corrupt, "%s: %w", where, err)
	}
	return schema.ParseStored[schema.DeploymentState]("deployment", where, data)
}

// decodeSavedOptions reads the saved options of a record; nil if there are none.
func decodeSavedOptions(secret *unstructured.Unstructured, where string) ([]byte, error) {
	if _, there, _ := unstructured.NestedFieldNoCopy(secret.Object, "data", savedOptionsKey); !there {
		return nil, nil
	}
	packed, err := cluster.SecretData(secret, savedOptionsKey)
	if err == nil {
		packed, err = decompress(packed, maxState)
	}
	if err != nil {
		return nil, report.Errorf(report.Corrupt, "%s: %s: %w", where, savedOptionsKey, err)
	}
	return packed, nil
}

// UnknownNamespace stands for the namespace of a record that cannot be read and belongs to no namespace that the user can list. It is not a
// valid name of a namespace.
const UnknownNamespace = "(unknown)"

// placeDamaged finds the namespaces of records that cannot be read, by the hash in their names.
func (e *Engine) placeDamaged(ctx context.Context, states []*State) error {
	if !slices.ContainsFunc(states, func(s *State) bool { return s.Damage != nil }) {
		return nil
	}
	namespaces, err := e.listMetadata(ctx, cluster.NamespaceKind, "", "")
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
		if s.Key, known = keyOfID(strings.TrimPrefix(s.secret.GetName(), statePrefix), names...); !known {
			s.Namespace = UnknownNamespace
		}
	}
	return nil
}

// keyOfID finds the key with an ID among the namespaces. If it is in none of them, only name and component are set.
func keyOfID(id string, namespaces ...string) (key Key, known bool) {
	key.Name, key.Component, _ = strings.Cut(id[:max(strings.LastIndexByte(id, '.'), 0)], ".")
	for _, namespace := range namespaces {
		if key.Namespace = namespace; key.ID() == id {
			return key, true
		}
	}
	key.Namespace = ""
	return key, false
}

// document returns the record as it is stored.
func (s *State) document(tool string) ([]byte, error) {
	return schema.MarshalStored(schema.DeploymentState{
		Stamp: schema.NewStamp("deployment", tool), Namespace: s.Namespace, Solution: s.Name, Component: s.Component, Current: s.Current, Pending: s.Pending, History: s.History, Approvals: s.Approvals,
	})
}

// maxApprovals limits the approvals on a record; powers of older ones have to be approved again.
const maxApprovals = 32

// approve adds an approval, unless the same one is recorded already.
func (s *State) approve(a *schema.PowerApproval, user string, now time.Time) {
	if a == nil || slices.ContainsFunc(s.Approvals, func(old schema.PowerApproval) bool {
		return old.Version == a.Version && old.Archive == a.Archive && reflect.DeepEqual(old.Powers, a.Powers)
	}) {
		return
	}
	done := *a
	done.ApprovedBy, done.ApprovedAt = user, now
	s.Approvals = slices.Concat([]schema.PowerApproval{done}, s.Approvals)
	s.Approvals = s.Approvals[:min(len(s.Approvals), maxApprovals)]
}

// errStaleRecord means that another process has written the record since it was read.
var errStaleRecord = errors.New("another process has changed the record meanwhile")

// save writes the record in place of the one that was read. The error is errStaleRecord if that has changed, except if the cluster has
// exactly the record to write: then an earlier attempt succeeded and its answer was lost.
func (e *Engine) save(ctx context.Context, s *State) error {
	data, err := s.document(e.Tool)
	if err != nil {
		return fmt.Errorf("record of %s: %w", s.Key, err)
	}
	parts := map[string][]byte{stateKey: e.compressors.compress(data)}
	if len(s.SavedOptions) > 0 && s.Pending != nil {
		parts[savedOptionsKey] = e.compressors.compress(s.SavedOptions)
		if len(parts[savedOptionsKey]) > maxSavedOptions {
			return report.Errorf(report.Refused, "the values of %s are too large to store: %d KiB compressed, the limit is %d", s.Key, len(parts[savedOptionsKey])>>10, maxSavedOptions>>10)
		}
	}
	secret := newSecret(s.secret, s.secretName(), "state", s.ID(), parts)
	var saved *unstructured.Unstructured
	if s.secret == nil {
		saved, err = e.createStored(ctx, secret)
	} else {
		saved, err = e.Cluster.Update(ctx, secret, cluster.WriteOptions{})
	}
	if errors.Is(err, cluster.ErrExists) || errors.Is(err, cluster.ErrChanged) {
		saved, err = e.Cluster.Get(ctx, cluster.SecretKind, cluster.SystemNamespace, s.secretName())
		if err == nil && (saved == nil || !sameData(saved, secret)) {
			err = errStaleRecord
		}
	}
	if err != nil {
		return fmt.Errorf("record of %s: %w", s.Key, err)
	}
	s.secret = saved
	return nil
}

// second returns the current time in the precision of records.
func (e *Engine) second() time.Time { return e.Now().UTC().Truncate(time.Second) }
