package schema_test

import (
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/schema"
)

var imageTexts = []string{
	"ui:1.0.0", "a:b", "my__storage:1", "a.b-c_d:1", "a--b:1", "0:0", "ui:1.0.0-rc.1", "ui:_x", "ui:" + strings.Repeat("a", 128),
	"", "ui", "ui:", ":1", "UI:1", "a/b:1", "a..b:1", "a___b:1", "-a:1", "a-:1", "ui:-1", "ui:.1", "ui:1+2", "ui:1:2", "ui:a b",
	"ui@sha256:abc", "ui:1\n", "ui:ä", "../x:1", "ui:" + strings.Repeat("a", 129),
}

var platformTexts = []string{
	"linux/amd64", "linux/arm/v7", "windows/amd64", "linux/arm64/v8", "linux/riscv64",
	"", "linux", "linux/", "/amd64", "Linux/amd64", "linux/arm/v7/x", "linux amd64", "linux/amd64\n",
}

func TestImageRef(t *testing.T) {
	for _, text := range imageTexts {
		ref, err := schema.ParseImageRef(text)
		if err != nil {
			continue
		}
		written, err := ref.MarshalText()
		if err != nil || string(written) != text {
			t.Errorf("%q was written as %q, %v", text, written, err)
		}
	}
	if _, err := (schema.ImageRef{Name: "a/b", Tag: "1"}).MarshalText(); err == nil {
		t.Error("an impossible reference was written")
	}
}

func TestPlatformMatches(t *testing.T) {
	for _, test := range []struct {
		wish, have string
		want       bool
	}{
		{"linux/amd64", "linux/amd64", true},
		{"linux/amd64", "linux/amd64/v2", true},
		{"linux/amd64", "linux/arm64", false},
		{"linux/amd64", "windows/amd64", false},
		{"linux/arm64", "linux/arm64/v8", true},
		{"linux/arm64/v8", "linux/arm64", true},
		{"linux/arm/v7", "linux/arm/v6", false},
		{"linux/arm/v7", "linux/arm", false},
	} {
		wish, err := schema.ParsePlatform(test.wish)
		if err != nil {
			t.Fatal(err)
		}
		have, err := schema.ParsePlatform(test.have)
		if err != nil {
			t.Fatal(err)
		}
		if got := wish.Matches(have); got != test.want {
			t.Errorf("%s is satisfied by %s = %t", wish, have, got)
		}
		if text, err := have.MarshalText(); err != nil || string(text) != test.have {
			t.Errorf("%s was written as %s, %v", test.have, text, err)
		}
	}
	for _, text := range []string{"linux/x86_64", "linux/aarch64"} {
		if p, err := schema.ParsePlatform(text); err == nil {
			t.Errorf("%q was read as %s", text, p)
		}
	}
}

// TestOddPlatform: an image can claim any platform. It can be printed, but not selected.
func TestOddPlatform(t *testing.T) {
	for _, p := range []schema.Platform{{OS: "Linux", Architecture: "amd64"}, {OS: "win dows", Architecture: "amd64"}} {
		if text, err := p.MarshalText(); err != nil || string(text) != p.String() {
			t.Errorf("%q, %v", text, err)
		}
		if _, err := schema.ParsePlatform(p.String()); err == nil {
			t.Errorf("%s is taken", p)
		}
	}
}
