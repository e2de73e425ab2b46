package install_test

import (
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/install"
	"github.com/solutionctl/solutionctl/schema"
)

// TestDevelopmentVersion gives a project versions that rise, and the same one while its content is the same.
func TestDevelopmentVersion(t *testing.T) {
	now := time.Date(2026, 1, 3, 4, 5, 6, 0, time.FixedZone("", 3600))
	for _, test := range []struct {
		name     string
		imported []string
		base     string
		digest   string
		want     string
	}{
		{"the first one", nil, "1.2.0", "0123456789", "1.2.0-dev.20260103030506.c01234567"},
		{"of a pre-release", nil, "1.2.0-rc.1", "abc", "1.2.0-rc.1.dev.20260103030506.cabc"},
		{"another content", []string{"1.1.0", "1.2.0-dev.20260101000000.c11111111"}, "1.2.0", "2222", "1.2.0-dev.20260103030506.c2222"},
		{"the content of the newest", []string{"1.2.0-dev.20260102000000.c22222222", "1.2.0-dev.20260101000000.c11111111"}, "1.2.0", "22222222ff", "1.2.0-dev.20260102000000.c22222222"},
		{"the content of an older one", []string{"1.2.0-dev.20260101000000.c11111111", "1.2.0-dev.20260102000000.c22222222"}, "1.2.0", "11111111ff", "1.2.0-dev.20260103030506.c11111111"},
		{"another base", []string{"1.2.0-dev.20260102000000.c22222222"}, "1.3.0", "22222222", "1.3.0-dev.20260103030506.c22222222"},
		{"a clock that was set back", []string{"1.2.0-dev.20260104000000.c22222222"}, "1.2.0", "33333333", "1.2.0-dev.20260104000001.c33333333"},
		{"a pre-release of the vendor", []string{"1.2.0-dev.1"}, "1.2.0", "33333333", "1.2.0-dev.20260103030506.c33333333"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bed := deployertest.New(t)
			for _, version := range test.imported {
				bed.Imported("shop", version, deployertest.Content{})
			}
			i := &install.Installer{Deployer: bed.Deployer}
			got, err := i.DevelopmentVersion(t.Context(), "shop", test.base, test.digest, now)
			if err != nil || got != test.want {
				t.Errorf("%s, %v, want %s", got, err, test.want)
			}
			if _, err := schema.ParseVersion(got); err != nil {
				t.Error(err)
			}
		})
	}
}
