package record

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// Key identifies a release: the objects of one owner in a namespace, or its cluster-wide objects if Namespace is empty. A key has
// at most one release at a time.
type Key struct {
	Namespace string
	Name      string // a DNS label: the name of a Solution
	// Component is a DNS label if this is the release of a component, and empty otherwise. Together with Name it has at most 53 characters.
	Component string
}

// Label returns the key without its namespace.
func (k Key) Label() string {
	if k.Component == "" {
		return k.Name
	}
	return k.Name + "." + k.Component
}

// String returns the name of the key in messages.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Label()
	}
	return k.Namespace + "/" + k.Label()
}

// CompareKeys orders keys by namespace, cluster-wide ones first, then by owner, and its own release before its components.
func CompareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Component, b.Component))
}

// ID returns the value of [schema.LabelRelease] on the objects of this key. It is part of the name of its record.
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

// SecretName returns the name of the Secret with the record of a release.
func (k Key) SecretName() string { return statePrefix + k.ID() }

// FindKey returns the key with an ID, if it is in one of the namespaces. If not, only its name and component are known.
func FindKey(id string, namespaces ...string) (key Key, known bool) {
	key = parseID(id)
	for _, namespace := range namespaces {
		if key.Namespace = namespace; key.ID() == id {
			return key, true
		}
	}
	key.Namespace = ""
	return key, false
}

// parseID returns the name and the component of an ID.
func parseID(id string) (key Key) {
	key.Name, key.Component, _ = strings.Cut(id[:max(strings.LastIndexByte(id, '.'), 0)], ".")
	return key
}

// FindKeys is [FindKey] for many IDs: it returns the keys, by ID, that are in one of the namespaces. It computes a digest for each namespace, name
// and component; FindKey computes one for each namespace and ID.
func FindKeys(ids []string, namespaces ...string) map[string]Key {
	wanted := map[Key]map[string]bool{}
	for _, id := range ids {
		key := parseID(id)
		if wanted[key] == nil {
			wanted[key] = map[string]bool{}
		}
		wanted[key][id] = true
	}
	found := map[string]Key{}
	for key, left := range wanted {
		for _, namespace := range namespaces {
			if len(left) == 0 {
				break
			}
			key.Namespace = namespace
			if id := key.ID(); left[id] {
				found[id] = key
				delete(left, id)
			}
		}
	}
	return found
}
