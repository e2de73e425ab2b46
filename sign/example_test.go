package sign_test

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/chunk"
	"github.com/solutionctl/solutionctl/sign/key"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// An archive is signed where it is made, and read through the verified reader where it is used.
func Example() {
	ctx, archive := context.Background(), []byte("bytes of an ISO file")
	password := func() ([]byte, error) { return []byte("secret"), nil }

	pair, err := key.Generate([]byte("secret"))
	if err != nil {
		fmt.Println(err)
		return
	}
	signer, err := key.Load(pair.Private, password)
	if err != nil {
		fmt.Println(err)
		return
	}
	sums, err := chunk.Sum(ctx, bytes.NewReader(archive), int64(len(archive)), report.Discard)
	if err != nil {
		fmt.Println(err)
		return
	}
	claims := sign.Claims{Name: "x.iso", Solution: bundle.Solution{Name: "acme-db", Version: "1.2.0"}, CreatedAt: time.Now()}
	statement, err := sign.NewStatement(sums, claims)
	if err != nil {
		fmt.Println(err)
		return
	}
	signed, err := bundle.SignStatement(ctx, signer, statement)
	if err != nil {
		fmt.Println(err)
		return
	}

	bundles := []sign.NamedBundle{{File: "x.iso.sigstore.json", Data: signed}}
	options := sign.Options{Store: trust.Keys(map[string]*key.Public{"acme": pair.Public}), Now: time.Now()}
	verdict, reader, err := sign.Verify(ctx, bytes.NewReader(archive), int64(len(archive)), bundles, options)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(verdict.Solution, "signed by", verdict.Signatures[0].KeyName, "has", reader.Size(), "bytes")

	archive[3] = '!'
	_, _, err = sign.Verify(ctx, bytes.NewReader(archive), int64(len(archive)), bundles, options)
	fmt.Println(report.CodeOf(err), err)
	// Output:
	// acme-db 1.2.0 signed by acme has 20 bytes
	// corrupt bytes 0 to 19 differ from what was signed
}
