package install

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// A development version is a pre-release of the version in solution.yaml: 1.2.0-dev.20260102150405.c0a1b2c3d. The time orders the
// versions, so that each is an upgrade of the one before; the digest of the content shows that a project has not changed.
const (
	developmentPart = "dev"
	developmentTime = "20060102150405"
	digestDigits    = 8
)

// DevelopmentVersion returns the version of a project for one more round of development: base is the version in solution.yaml, and digest
// names the content. It is the newest one that was imported, if that has the same base and content.
func (i *Installer) DevelopmentVersion(ctx context.Context, solution, base, digest string, now time.Time) (string, error) {
	imports, err := i.Deployer.Records.Imports(ctx)
	if err != nil {
		return "", err
	}
	content := "c" + digest[:min(len(digest), digestDigits)] // a letter first: an identifier of digits alone must not begin with 0
	moment, newest, version := now.UTC().Format(developmentTime), "", ""
	for _, known := range imports {
		if at, ok := developmentMoment(known.Version); ok && known.Name == solution && at > newest {
			newest, version = at, known.Version
		}
	}
	if version != "" && version == developmentVersion(base, newest, content) {
		return version, nil
	}
	if newest >= moment { // the clock was set back, or the round is of the same second
		moment = momentAfter(newest)
	}
	version = developmentVersion(base, moment, content)
	_, err = schema.ParseVersion(version)
	return version, err
}

func developmentVersion(base, moment, content string) string {
	separator := "-"
	if strings.Contains(base, "-") { // a pre-release
		separator = "."
	}
	return base + separator + strings.Join([]string{developmentPart, moment, content}, ".")
}

// developmentMoment returns the time in a development version, and whether it is one.
func developmentMoment(version string) (moment string, ok bool) {
	parts := strings.Split(strings.ReplaceAll(version, "-", "."), ".")
	if n := len(parts); n > 4 && parts[n-3] == developmentPart && len(parts[n-2]) == len(developmentTime) && parts[n-1] != "" && parts[n-1][0] == 'c' {
		_, err := strconv.ParseUint(parts[n-2], 10, 64)
		return parts[n-2], err == nil
	}
	return "", false
}

// momentAfter returns the next number of the same length. It need not be a time.
func momentAfter(moment string) string {
	n, err := strconv.ParseUint(moment, 10, 64)
	if err != nil {
		panic(err) // developmentMoment has parsed it
	}
	return fmt.Sprintf("%0*d", len(developmentTime), n+1)
}

// ReplacesRelease reports whether the active version of a Solution is one that was not made for development: a round of development
// would replace what others have released.
func (i *Installer) ReplacesRelease(ctx context.Context, solution string) (bool, error) {
	active, err := i.Deployer.Records.Active(ctx, solution)
	if err != nil || active == "" {
		return false, err
	}
	_, development := developmentMoment(active)
	return !development, nil
}

// RemoveDevelopment unimports the development versions of a Solution that nothing uses, except the one to keep. Those that were imported
// on another host stay. It returns what was removed.
func (i *Installer) RemoveDevelopment(ctx context.Context, solution, keep string) ([]string, error) {
	imports, err := i.Deployer.Records.Imports(ctx)
	if err != nil {
		return nil, err
	}
	var removed []string
	for _, known := range imports {
		if _, ok := developmentMoment(known.Version); known.Name != solution || !ok || known.Version == keep {
			continue
		}
		done, err := i.Host.Unimport(ctx, host.UnimportOptions{Archive: known.Name, Version: known.Version})
		switch code := report.CodeOf(err); {
		case code == report.InUse || code == report.NotFound:
		case err != nil:
			return removed, err
		case done.Path != "":
			removed = append(removed, known.Version)
		}
	}
	return removed, nil
}
