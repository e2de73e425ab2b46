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
	stateKey     = "state.json.gz"
	givenKey     = "given.gz"
	historyLimit = 5
	maxState     = 64 << 20  // of a record, uncompressed
	maxGiven     = 512 << 10 // of what lies beside it, compressed: both are one Secret
)

// ID is the value of [LabelRelease] on the objects of this key, and part of the name of its record.
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

// RecordName is the name of the Secret with the record of a release.
func RecordName(k Key) string { return k.secretName() }

// Secret is the name of the Secret that was read, "" when there is none.
func (s *State) Secret() string {
	if s.secret == nil {
		return ""
	}
	return s.secret.GetName()
}

// State is the record of a release with the place that it was read from.
type State struct {
	Key
	Current   *schema.DeploymentRevision  // the last one that was completed, nil before
	Pending   *schema.DeploymentRevision  // the one that was begun and not completed, nil otherwise
	History   []schema.DeploymentRevision // earlier ones without their objects, the newest first
	Approvals []schema.PowerApproval      // what people have approved of, the newest first
	// Given is that of the [Release] that was begun and not completed; nil otherwise.
	Given []byte
	// Damage is why the record cannot be read. Then nothing else is known but whose it is: objects may be there or not.
	Damage error

	secret *unstructured.Unstructured // as it was read, nil when there is none
}

// Recent returns the revision that was begun, if one was, and the last one that was completed.
func (s *State) Recent() []*schema.DeploymentRevision {
	return slices.DeleteFunc([]*schema.DeploymentRevision{s.Pending, s.Current}, func(r *schema.DeploymentRevision) bool { return r == nil })
}

// Revisions returns all that are known, the newest first.
func (s *State) Revisions() []*schema.DeploymentRevision {
	all := s.Recent()
	for i := range s.History {
		all = append(all, &s.History[i])
	}
	return all
}

// State returns what is known about a release; a State without Current and Pending when there is nothing. The error is that
// of the record where it cannot be read.
func (e *Engine) State(ctx context.Context, key Key) (*State, error) {
	s, err := e.Look(ctx, key)
	if err != nil {
		return nil, err
	}
	return s, s.Damage
}

// Look is [Engine.State] for whoever goes on where a record cannot be read.
func (e *Engine) Look(ctx context.Context, key Key) (*State, error) {
	secret, err := e.Cluster.Get(ctx, cluster.SecretKind, cluster.SystemNamespace, key.secretName())
	if err != nil {
		return nil, fmt.Errorf("record of %s: %w", key, err)
	}
	if secret == nil {
		return &State{Key: key}, nil
	}
	return readState(secret, key), nil
}

// States returns what is known about all releases, sorted by namespace and name. A record that cannot be read is among
// them, with its Damage.
func (e *Engine) States(ctx context.Context) ([]*State, error) {
	var secrets []*unstructured.Unstructured
	for secret, err := range e.Cluster.List(ctx, cluster.SecretKind, cluster.SystemNamespace, metav1.ListOptions{LabelSelector: labelStores + "=state"}) {
		if err != nil {
			return nil, fmt.Errorf("records of what is deployed: %w", err)
		}
		secrets = append(secrets, secret)
	}
	states := make([]*State, len(secrets))
	_ = each(len(secrets), true, func(i int) error {
		if states[i] = readState(secrets[i]); states[i].Damage == nil {
			delete(secrets[i].Object, "data") // it is kept once, and decoded
		}
		return nil
	})
	if err := e.placeDamaged(ctx, states); err != nil {
		return nil, err
	}
	slices.SortFunc(states, func(a, b *State) int { return CompareKeys(a.Key, b.Key) })
	return states, nil
}

// ReadAhead reads all records at once into the memory of the context, see [cluster.WithMemory], for whoever will ask for many.
func (e *Engine) ReadAhead(ctx context.Context) error {
	var secrets []*unstructured.Unstructured
	for secret, err := range e.Cluster.List(ctx, cluster.SecretKind, cluster.SystemNamespace, metav1.ListOptions{LabelSelector: labelStores + "=state"}) {
		if err != nil {
			return fmt.Errorf("records of what is deployed: %w", err)
		}
		secrets = append(secrets, secret)
	}
	cluster.Remember(ctx, cluster.SecretKind, statePrefix, secrets)
	return nil
}

// manyStates is the number of records up to which each is read by itself; beyond that, all are read at once.
const manyStates = 32

// StatesIn returns what is known about the releases in namespaces, sorted like [Engine.States]. It reads no other records:
// the name of a record says whose it is.
func (e *Engine) StatesIn(ctx context.Context, namespaces ...string) ([]*State, error) {
	records, err := e.listMetadata(ctx, cluster.SecretKind, cluster.SystemNamespace, labelStores+"=state")
	if err != nil {
		return nil, fmt.Errorf("records of what is deployed: %w", err)
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
		states[i], err = e.Look(ctx, keys[i])
		return err
	})
	return slices.DeleteFunc(states, func(s *State) bool { return s == nil || s.secret == nil }), err
}

// Forget removes the records of releases that have no objects any more, with their histories. It refuses with the code InUse
// while there are objects.
func (e *Engine) Forget(ctx context.Context, keys ...Key) error {
	states, err := e.statesOf(ctx, keys)
	if err != nil {
		return err
	}
	states = slices.DeleteFunc(states, func(s *State) bool { return s.secret == nil })
	var owners []string
	for _, s := range states {
		if left := len(s.inventory()); left > 0 {
			return report.Errorf(report.InUse, "forget %s: %s of it still in the cluster", s.Key, report.Count(left, "object"))
		}
		owners = append(owners, s.ID())
	}
	if err := e.collect(ctx, owners); err != nil {
		return err
	}
	return each(len(states), true, func(i int) error {
		if err := e.Cluster.Delete(ctx, states[i].secret, cluster.DeleteOptions{}); err != nil {
			return fmt.Errorf("forget %s: %w", states[i].Key, err)
		}
		return nil
	})
}

// Objects returns the objects of a revision as they were rendered, for going back to it.
func (e *Engine) Objects(ctx context.Context, key Key, r *schema.DeploymentRevision) ([]*unstructured.Unstructured, error) {
	content, err := e.Content(ctx, key, r)
	if err != nil {
		return nil, err
	}
	return content.Objects, nil
}

// Content returns what is kept of a revision, for going back to it.
func (e *Engine) Content(ctx context.Context, key Key, r *schema.DeploymentRevision) (*Content, error) {
	data, err := e.LoadContent(ctx, key.ID(), r.Content)
	if code := report.CodeOf(err); code == report.NotFound || code == report.Corrupt {
		return nil, report.Errorf(report.Corrupt, "objects of %s, revision %d: %w", key, r.Number, err).
			WithHint("rebuild the record from what is in the cluster: %s", report.Run("deploy repair").With("records"))
	}
	if err != nil {
		return nil, fmt.Errorf("objects of %s, revision %d: %w", key, r.Number, err)
	}
	return decodeContent(data)
}

// inventory returns the objects of the last completed revision and of the one that was begun, each once. What is known of
// the newer one counts, except that a UID is never forgotten.
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

// readState decodes a record. What stands in it must be about one of the keys, if there are any, and about nothing else than
// its name says.
func readState(secret *unstructured.Unstructured, keys ...Key) *State {
	where := "Secret " + secret.GetNamespace() + "/" + secret.GetName()
	d, err := decodeState(secret, where)
	var given []byte
	if err == nil && d.Pending != nil {
		given, err = decodeGiven(secret, where)
	}
	if err == nil {
		s := &State{
			Key: Key{d.Namespace, d.Solution, d.Component}, Current: d.Current, Pending: d.Pending, History: d.History, Approvals: d.Approvals, Given: given,
			secret: secret,
		}
		if s.secretName() == secret.GetName() {
			return s
		}
		err = report.Errorf(report.Corrupt, "%s is the record of %s, and has the name of another one", where, s.Key)
	}
	if report.CodeOf(err) == report.Corrupt {
		err = report.Errorf(report.Corrupt, "%w", err).WithHint("rebuild the record from what is in the cluster: %s", report.Run("deploy repair").With("records"))
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

// decodeGiven reads what lies beside a record; nil where that is nothing.
func decodeGiven(secret *unstructured.Unstructured, where string) ([]byte, error) {
	if _, there, _ := unstructured.NestedFieldNoCopy(secret.Object, "data", givenKey); !there {
		return nil, nil
	}
	packed, err := cluster.SecretData(secret, givenKey)
	if err == nil {
		packed, err = decompress(packed, maxState)
	}
	if err != nil {
		return nil, report.Errorf(report.Corrupt, "%s: %s: %w", where, givenKey, err)
	}
	return packed, nil
}

// Nowhere is the namespace of a record that cannot be read and that is of none of the namespaces of the cluster that the user
// may see. No namespace has this name.
const Nowhere = "(unknown)"

// placeDamaged finds out which namespaces the records are about that cannot be read: their names have a hash of it.
func (e *Engine) placeDamaged(ctx context.Context, states []*State) error {
	if !slices.ContainsFunc(states, func(s *State) bool { return s.Damage != nil }) {
		return nil
	}
	namespaces, err := e.listMetadata(ctx, cluster.NamespaceKind, "", "")
	if err != nil && report.CodeOf(err) != report.Forbidden {
		return fmt.Errorf("a record cannot be read, and which namespace it is about neither: %w", err)
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
			s.Namespace = Nowhere
		}
	}
	return nil
}

// keyOfID finds the key with an ID among those of some namespaces; without one of them only whose it is is known.
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

// document is the record as it is stored.
func (s *State) document(tool string) ([]byte, error) {
	return schema.MarshalStored(schema.DeploymentState{
		Stamp: schema.NewStamp("deployment", tool), Namespace: s.Namespace, Solution: s.Name, Component: s.Component, Current: s.Current, Pending: s.Pending, History: s.History, Approvals: s.Approvals,
	})
}

// maxApprovals is how many approvals a record keeps; the powers of older ones are asked for again.
const maxApprovals = 32

// approve adds what a person has approved of, unless the run is a repetition of one that has.
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

// errOutrun means that somebody else wrote the record since it was read.
var errOutrun = errors.New("the record was changed by somebody else meanwhile")

// save writes the record in place of the one that was read. The error is errOutrun when that is no longer the one in the
// cluster, unless what is there is what was to be written: then an earlier attempt succeeded and its answer was lost.
func (e *Engine) save(ctx context.Context, s *State) error {
	data, err := s.document(e.Tool)
	if err != nil {
		return fmt.Errorf("record of %s: %w", s.Key, err)
	}
	parts := map[string][]byte{stateKey: e.compressors.compress(data)}
	if len(s.Given) > 0 && s.Pending != nil {
		parts[givenKey] = e.compressors.compress(s.Given)
		if len(parts[givenKey]) > maxGiven {
			return report.Errorf(report.Refused, "what was given for %s is too large to be kept in the cluster: %d KiB, compressed, of at most %d", s.Key, len(parts[givenKey])>>10, maxGiven>>10)
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
			err = errOutrun
		}
	}
	if err != nil {
		return fmt.Errorf("record of %s: %w", s.Key, err)
	}
	s.secret = saved
	return nil
}

// second is the time as records have it.
func (e *Engine) second() time.Time { return e.Now().UTC().Truncate(time.Second) }
