package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/schema/report/scripttest"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/key"
	"github.com/solutionctl/solutionctl/sign/key/keytest"
)

const (
	scripts        = "../../testdata/script"
	clusterScripts = "../../deployer/e2e/testdata/script" // run by the tests of that module, on a real cluster
)

var update = flag.Bool("update", false, "rewrite the expected output in the scripts")

func TestMain(m *testing.M) {
	cobra.EnableCommandSorting = false // as run does
	testscript.Main(m, map[string]func(){"solutionctl": main})
}

// TestScript runs every script in testdata/script. To the commands of testscript it adds
//
//	fails CODE COMMAND [ARG...]    the command must fail with this error code and its exit status
//	judge PROGRAM [ARG...]         an independent tool has to succeed; where it is missing, only CI fails
//	bad-registry                   serves images that do not come, or not the same twice; sets REGISTRY
//	await-stall                    waits until another process waits for it
//	mkimage FILE DIR               makes an image of one layer, as docker save writes it
//	flip FILE OFFSET               changes one byte of a file
//	key NAME...                    writes NAME.key and NAME.pub, as keygen does, but without a password, which costs time at each use
//	attest KEY STATEMENT BUNDLE    signs a statement unchanged and unchecked, with the password "secret"
//	free-address NAME              sets a variable to an address that nothing listens on
//	probe ADDRESS                  connects, sends nothing and waits for the other side to close the connection
//	fake-cluster OBJECTS [LOGS]    starts an API server in memory with a deployed Solution, see fakeCluster
//	fetch STATUS URL FILE          asks until the answer has the status, and writes its body to a file
//	site-registry [STATUS ...]     starts a registry that takes images, or refuses them; sets REGISTRY
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 scripts,
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"fails": scripttest.Fails, "judge": scripttest.Judge, "mkiso": mkiso, "mkimage": mkimage, "bad-registry": startBadRegistry, "await-stall": awaitStall, "flip": flip,
			"attest":       attest,
			"key":          writeKeys,
			"fake-cluster": fakeCluster(t),
			"free-address": freeAddress, "fetch": fetch, "probe": probe, "site-registry": siteRegistry,
		},
		Setup: func(env *testscript.Env) error {
			scripttest.InheritMemory(env)
			env.Values[registryKey] = newBadRegistry()
			env.Setenv("SOLUTIONCTL_CONFIG", os.DevNull) // what is installed on this host does not matter
			return nil
		},
	})
}

func flip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: flip FILE OFFSET")
	}
	offset, err := strconv.Atoi(args[1])
	ts.Check(err)
	name := ts.MkAbs(args[0])
	data, err := os.ReadFile(name)
	ts.Check(err)
	data[offset] ^= 1
	ts.Check(os.WriteFile(name, data, 0o644))
}

func writeKeys(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: key NAME...")
	}
	for _, name := range args {
		ts.Check(keytest.Write(ts.MkAbs(name)))
	}
}

func attest(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: attest KEY STATEMENT BUNDLE")
	}
	private, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	signer, err := key.Load(private, func() ([]byte, error) { return []byte("secret"), nil })
	ts.Check(err)
	payload, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	signature, err := signer.SignMessage(context.Background(), fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(bundle.PayloadType), bundle.PayloadType, len(payload), payload))
	ts.Check(err)
	data, err := json.Marshal(map[string]any{
		"mediaType":            "application/vnd.dev.sigstore.bundle.v0.3+json",
		"verificationMaterial": map[string]any{"publicKey": map[string]any{"hint": signer.Public().ID()}},
		"dsseEnvelope": map[string]any{
			"payload": payload, "payloadType": bundle.PayloadType, "signatures": []any{map[string]any{"sig": signature}},
		},
	})
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), data, 0o644))
}

func mkiso(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mkiso FILE DIR")
	}
	var files []iso.File
	root := os.DirFS(ts.MkAbs(args[1]))
	ts.Check(fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		files = append(files, iso.File{Path: path, Size: info.Size(), Open: func() (io.ReadCloser, error) { return root.Open(path) }})
		return err
	}))
	image, err := iso.Layout(files, iso.Options{VolumeID: "TEST", ModTime: time.Unix(1e9, 0)})
	ts.Check(err)
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	_, err = image.WriteTo(f)
	ts.Check(errors.Join(err, f.Close()))
}

// withoutScript lists the codes that no script produces yet, with the command that will bring it.
var withoutScript = map[report.Code]string{}

// producing matches the lines of a script that prove a code: of a command that is run, and of one in the background.
var producing = regexp.MustCompile(`(?m)^(?:fails (\S+) |stderr 'code: (\S+) )`)

func TestEveryCodeHasAScript(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(scripts, "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	onCluster, err := filepath.Glob(filepath.Join(clusterScripts, "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, onCluster...)
	produced := map[report.Code]bool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range producing.FindAllStringSubmatch(string(data), -1) {
			produced[report.Code(match[1]+match[2])] = true
		}
	}
	for _, info := range report.Codes() {
		command, excused := withoutScript[info.Code]
		switch {
		case produced[info.Code] && excused:
			t.Errorf("%s: has a script; take it off the list", info.Code)
		case !produced[info.Code] && !excused:
			t.Errorf("%s: no script has a line 'fails %s …'", info.Code, info.Code)
		case excused && hasCommand(command):
			t.Errorf("%s: the command %q exists; write a script that fails like this", info.Code, command)
		}
	}
}

func hasCommand(name string) bool {
	root := newRootCommand(&app{cli.New(strings.NewReader(""), os.Stdout, os.Stderr, os.Getenv, nil, "1.2.3")})
	cmd, _, err := root.Find([]string{name})
	return err == nil && cmd != root
}
