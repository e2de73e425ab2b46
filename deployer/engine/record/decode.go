package record

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	stateKey        = "state.json.gz"
	savedOptionsKey = "given.gz"
	maxState        = 64 << 20  // size of a record, uncompressed
	maxSavedOptions = 512 << 10 // size of the saved options, compressed: both are in one Secret
)

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
		if s.SecretName() == secret.GetName() {
			return s
		}
		err = report.Errorf(report.Corrupt, "%s is the record of %s, but has another name", where, s.Key)
	}
	if report.CodeOf(err) == report.Corrupt {
		err = report.As(report.Corrupt, err).WithHint("rebuild the record from the objects in the cluster: %s", report.Run("deploy repair").With("records"))
	}
	s := &State{Damage: err, secret: secret}
	s.Key, _ = FindKey(strings.TrimPrefix(secret.GetName(), statePrefix))
	if len(keys) > 0 {
		s.Key = keys[0]
	}
	return s
}

func decodeState(secret *unstructured.Unstructured, where string) (*schema.DeploymentState, error) {
	data, err := unpack(secret, stateKey)
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
	data, err := unpack(secret, savedOptionsKey)
	if err != nil {
		return nil, report.Errorf(report.Corrupt, "%s: %s: %w", where, savedOptionsKey, err)
	}
	return data, nil
}

func unpack(secret *unstructured.Unstructured, key string) ([]byte, error) {
	packed, err := cluster.SecretData(secret, key)
	if err != nil {
		return nil, err
	}
	return decompress(packed, maxState)
}

// document returns the record as it is stored.
func (s *State) document(tool string) ([]byte, error) {
	return schema.MarshalStored(schema.DeploymentState{
		Stamp: schema.NewStamp("deployment", tool), Namespace: s.Namespace, Solution: s.Name, Component: s.Component, Current: s.Current, Pending: s.Pending, History: s.History, Approvals: s.Approvals,
	})
}
