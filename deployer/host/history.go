package host

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// again checks for imports, and for changes of the trust store, since the archives were admitted. The store is locked.
func (d *admission) again(list []*admitted) error {
	if err := d.load(); err != nil {
		return err
	}
	for _, c := range list {
		err := d.checkRevoked(c)
		if err == nil && c.verdict != nil {
			err = d.checkSigners(c)
		}
		if err == nil {
			err = d.checkMaximum(c)
		}
		if err == nil {
			err = d.checkHistory(c)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.source.Path, err)
		}
	}
	return nil
}

// checkRevoked refuses an archive that was revoked, or that a revoked key has signed.
func (d *admission) checkRevoked(c *admitted) error {
	digest, err := hex.DecodeString(c.source.SHA256)
	if err != nil {
		return err
	}
	revoked := d.trusted.RevokedKeys()
	if slices.ContainsFunc(c.source.Signers, func(id string) bool { return slices.Contains(revoked, id) }) {
		return report.Errorf(report.Revoked, "a key that signed the archive was revoked while it was examined").
			WithHint("run the command again: other signatures of the archive may count")
	}
	return d.trusted.CheckArchive(digest, c.solution())
}

// checkSigners refuses an archive whose signatures do not count any more: a key was removed, or the policy was changed.
func (d *admission) checkSigners(c *admitted) error {
	var accepted []sign.NamedBundle
	for _, b := range c.source.Bundles {
		if b.Accepted {
			accepted = append(accepted, sign.NamedBundle{File: filepath.Base(c.name), Data: b.Data})
		}
	}
	err := sign.Recheck(accepted, sign.Identity{Solution: c.solution()}, d.signOptions(c.name))
	if err != nil {
		err = report.Errorf(report.CodeOf(err), "the trust store was changed while the archive was examined: %w", err)
	}
	return err
}

// checkHistory refuses a version that is older than an imported one, and other content under an imported version.
func (d *admission) checkHistory(c *admitted) error {
	err := d.state.Check(c.solution(), c.source.SHA256, d.trusted.RevokedKeys())
	if report.CodeOf(err) != report.Downgrade {
		return err
	}
	if d.options.AllowDowngrade || d.has(c.solution(), c.source.SHA256) {
		return nil
	}
	if rule, _, failure := d.trusted.Rule(c.source.Name); failure == nil && rule.Downgrade == "allow" {
		return nil
	}
	return err
}

// remember records an archive, so that older and replaced ones are recognised later.
func (d *admission) remember(c *admitted) error {
	return trust.UpdateState(d.options.State, func(state *trust.State) error {
		state.Record(c.solution(), c.source.SHA256, c.source.Signers, d.trusted)
		return nil
	})
}
