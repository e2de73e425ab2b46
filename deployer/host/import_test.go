package host

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/key/keytest"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// meanwhile makes the next import wait for the lock of the store, and does something before it gets it.
func (w *world) meanwhile(do func(locked *store.Locked)) {
	w.t.Helper()
	locked, err := w.Store.Lock()
	if err != nil {
		w.t.Fatal(err)
	}
	w.LockWait = time.Minute
	w.Sink = sinkFunc(func(e report.Event) {
		if e.Step == "lock" && e.State == report.Started {
			do(locked)
			if err := locked.Unlock(); err != nil {
				w.t.Error(err)
			}
		}
	})
}

// revoke adds to the revocations of the trust store.
func (w *world) revoke(more trust.Revocations) {
	w.t.Helper()
	root := keytest.New(w.t)
	draft, err := trust.Prepare(w.path("trust"), more, root.Public(), nil)
	if err == nil {
		err = draft.Issue(w.t.Context(), root)
	}
	if err != nil {
		w.t.Error(err)
	}
}

// changePolicy replaces a part of the policy that limit has written.
func (w *world) changePolicy(before, after string) {
	w.t.Helper()
	policy := string(w.read(w.path("trust/policy.yaml")))
	if !strings.Contains(policy, before) {
		w.t.Errorf("the policy has no %s", before)
	}
	w.write(w.path("trust/policy.yaml"), []byte(strings.Replace(policy, before, after, 1)))
}

// TestImportAfterWaiting: what another process decides while an import waits for the lock counts for the import.
func TestImportAfterWaiting(t *testing.T) {
	for _, test := range []struct {
		name      string
		wanted    schema.RegistryMode
		meanwhile func(w *world, path string, locked *store.Locked)
		want      report.Code // "" for none
	}{
		{"another registry mode", schema.RegistryOwn, func(w *world, _ string, locked *store.Locked) {
			if err := locked.SetRegistryMode(schema.RegistryMetalK8s, w.Version); err != nil {
				w.t.Error(err)
			}
		}, report.Refused},
		{"a registry mode", "", func(w *world, _ string, locked *store.Locked) {
			if err := locked.SetRegistryMode(schema.RegistryMetalK8s, w.Version); err != nil {
				w.t.Error(err)
			}
		}, ""},
		{"the archive is revoked", schema.RegistryMetalK8s, func(w *world, path string, _ *store.Locked) {
			digest := sha256.Sum256(w.read(path))
			w.revoke(trust.Revocations{Archives: []string{"sha256:" + hex.EncodeToString(digest[:])}})
		}, report.Revoked},
		{"the key is revoked", schema.RegistryMetalK8s, func(w *world, _ string, _ *store.Locked) {
			w.revoke(trust.Revocations{Keys: []string{w.acme.Public().ID()}})
		}, report.Revoked},
		{"the key is removed", schema.RegistryMetalK8s, func(w *world, _ string, _ *store.Locked) {
			w.write(w.path("trust/keys/acme.pub"), w.mallory.Public().PEM())
		}, report.Untrusted},
		{"another key has to sign", schema.RegistryMetalK8s, func(w *world, _ string, _ *store.Locked) {
			w.write(w.path("trust/keys/second.pub"), w.mallory.Public().PEM())
			w.changePolicy("[{key: acme}]", "[{key: second}]")
		}, report.NotAllowed},
		{"two keys have to sign", schema.RegistryMetalK8s, func(w *world, _ string, _ *store.Locked) {
			w.write(w.path("trust/keys/second.pub"), w.mallory.Public().PEM())
			w.changePolicy("[{key: acme}]", "[{key: acme}, {key: second}]\n  threshold: 2")
		}, report.Threshold},
		{"another key may sign, too", schema.RegistryMetalK8s, func(w *world, _ string, _ *store.Locked) {
			w.write(w.path("trust/keys/second.pub"), w.mallory.Public().PEM())
			w.changePolicy("[{key: acme}]", "[{key: second}, {key: acme}]")
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.limit("[]")
			w.Cluster, w.options.RegistryMode = nil, test.wanted
			path := w.archive("1.0.0", store.NginxTemplate, "# there are no images\n")
			w.meanwhile(func(locked *store.Locked) { test.meanwhile(w, path, locked) })
			done, err := w.do(path)
			if test.want != "" {
				checkCode(t, err, test.want)
			} else if err != nil || done.RegistryMode != schema.RegistryMetalK8s {
				t.Errorf("%+v, %v", done, err)
			}
			if got := w.stored(); (len(got) == 0) != (test.want != "") {
				t.Errorf("stored %q", got)
			}
			if mode, err := w.Store.RegistryMode(); err != nil || mode == schema.RegistryOwn {
				t.Errorf("registry mode %s, %v", mode, err)
			}
		})
	}
}

// TestImportAfterLowerMaximum: the policy lets the Solution do less than when the archive was examined.
func TestImportAfterLowerMaximum(t *testing.T) {
	w := newWorld(t)
	w.limit("[defines-foreign-apis]")
	w.meanwhile(func(*store.Locked) { w.changePolicy("[defines-foreign-apis]", "[]") })
	_, err := w.do(w.archive("1.0.0", widgetIn("gateway.networking.k8s.io")...))
	checkCode(t, err, report.Refused)
	if len(w.stored()) > 0 {
		t.Errorf("stored %v", w.stored())
	}
}

// TestImportStopsBetweenArchives imports two archives, and the newer one cannot get its name. The older one is reported, no still older
// one may follow, and the same import finishes the work.
func TestImportStopsBetweenArchives(t *testing.T) {
	w := newWorld(t)
	first, second := w.archive("1.0.0"), w.archive("2.0.0")
	w.Sink = sinkFunc(func(e report.Event) {
		if e.Step == "copy" && e.State == report.Done && e.Name == "demo-2.0.0" {
			if err := os.MkdirAll(w.path("store/archives/demo-2.0.0.iso/in-the-way"), 0o700); err != nil {
				t.Error(err)
			}
		}
	})
	done, err := w.do(second, first)
	checkCode(t, err, report.Failure)
	if done == nil || len(done.Archives) != 1 || done.Archives[0].Version != "1.0.0" || done.Recorded {
		t.Errorf("report: %+v", done)
	}
	if err = os.RemoveAll(w.path("store/archives/demo-2.0.0.iso")); err != nil {
		t.Fatal(err)
	}
	if got := w.stored(); !slices.Equal(got, []string{"demo-1.0.0"}) {
		t.Errorf("stored: %q", got)
	}
	w.Sink = w
	_, err = w.do(w.archive("0.9.0"))
	checkCode(t, err, report.Downgrade)
	if done, err = w.do(second, first); err != nil || !done.Recorded || !slices.Equal(w.stored(), []string{"demo-1.0.0", "demo-2.0.0"}) {
		t.Errorf("afterwards: %+v, %v, stored %q", done, err, w.stored())
	}
}

// TestCopiesOfASignature keeps a signature of each signer before further ones of the same signer, of which anyone can make many.
func TestCopiesOfASignature(t *testing.T) {
	w := newWorld(t)
	path := w.archive("1.0.0")
	digest := sha256.Sum256(w.read(path))
	data := w.read(path + ".sigstore.json")
	verdict := &sign.Verdict{}
	var bundles []sign.NamedBundle
	for _, key := range []string{"acme", "acme", "second"} {
		bundles = append(bundles, sign.NamedBundle{Data: data})
		verdict.Signatures = append(verdict.Signatures, sign.Signature{Status: sign.Accepted, KeyName: key, KeyID: key})
		data = append(slices.Clip(data), ' ')
	}
	var accepted []bool
	for _, b := range bundlesToKeep(bundles, hex.EncodeToString(digest[:]), verdict) {
		accepted = append(accepted, b.Accepted)
	}
	if !slices.Equal(accepted, []bool{true, false, true}) {
		t.Errorf("kept first: %v", accepted)
	}
}
