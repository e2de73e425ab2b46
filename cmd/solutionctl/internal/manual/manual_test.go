package manual

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

const want = `.Dd November 14, 2023
.Dt TOOL-PACK 1
.Os
.Sh NAME
.Nm tool-pack
.Nd "Pack files"
.Sh SYNOPSIS
.Nm "tool pack"
.Op Ar "FROM TO"
.Ar \&Fl
.Op Ar flags
.Sh DESCRIPTION
Pack files.
\&.hidden ones, and \(aqquoted\(aq ones with \e, too.
.Bd -literal -offset indent
\&.a  one
  b  two\[u2026]
.Ed
After that.
.Pp
Last.
.Sh OPTIONS
.Bl -tag -width Ds
.It Fl l , Fl -level Ar N
Compress with level N.
The default is 3.
Variables: SOLUTIONCTL_PACK_LEVEL, SOLUTIONCTL_LEVEL.
.El
.Sh "EXIT STATUS"
The options and the exit statuses of
.Xr tool 1
apply to this command as well.
.Sh EXAMPLES
.Bd -literal -offset indent
tool pack a b
.Ed
.Sh "SEE ALSO"
.Xr tool 1 ,
.Xr tool-unpack 1
`

func TestPages(t *testing.T) {
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "tool", Short: "Do things"}
	pack := &cobra.Command{
		Use: "pack [FROM TO] Fl", Short: "Pack files", Run: run, Example: "  tool pack a b",
		Long: "Pack files. .hidden ones, and 'quoted' ones with \\, too.\n  .a  one\n    b  two…\nAfter that.\n\nLast.",
	}
	pack.Flags().IntP("level", "l", 3, "compress with level `N`")
	root.AddCommand(pack, &cobra.Command{Use: "unpack", Short: "Unpack files", Run: run}, &cobra.Command{Use: "secret", Hidden: true, Run: run})
	pages := Pages(root, time.Unix(1700000000, 0))
	if len(pages) != 3 {
		t.Errorf("%d pages, want those of tool, pack and unpack", len(pages))
	}
	if diff := cmp.Diff(want, string(pages["tool-pack.1"])); diff != "" {
		t.Error(diff)
	}
}
