// Command image writes an OCI image layout with the image of solutionctl, for several platforms:
//
//	go run ./cmd/image [-created SECONDS] DIRECTORY linux/amd64=FILE linux/arm64=FILE
//
// The image has one layer with nothing in it but the program, which belongs to root and is started by a user without rights. The
// same programs give the same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	created := flag.Int64("created", 0, "when the image was made, in `SECONDS` since 1970")
	flag.Parse()
	if err := run(time.Unix(*created, 0).UTC(), flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image: error:", err)
		os.Exit(1)
	}
}

func run(created time.Time, args []string) error {
	if len(args) < 2 {
		return errors.New("usage: go run ./cmd/image [-created SECONDS] DIRECTORY OS/ARCHITECTURE=FILE [...]")
	}
	var programs []program
	for _, arg := range args[1:] {
		platform, file, ok := strings.Cut(arg, "=")
		system, architecture, named := strings.Cut(platform, "/")
		if !ok || !named {
			return fmt.Errorf("%q is not OS/ARCHITECTURE=FILE", arg)
		}
		programs = append(programs, program{system, architecture, file})
	}
	return write(args[0], created, programs)
}
