// Package doctor checks a host and a cluster for problems before something is changed.
//
// [Examine] runs all checks: the store and the node's configuration on this host, the API server, objects of the
// cluster that do not answer or cannot be deleted, the permissions of the user, the records, the loader, and the
// registry, which it asks for an image of every imported version. It changes nothing. A check that cannot run is a
// finding as well: without a cluster the host is still checked, and without a store the cluster is, for users without
// access to this host.
//
// No finding quotes the content of an object, the output of a program or a value of a Secret.
package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Options select the checks. Now is required, and Configuration with a Store.
type Options struct {
	Store         *store.Store // nil leaves out this host, whatever the fields below say of it
	Configuration *store.Configuration
	Authority     string // file with the certificate of this host's registry authority, which may be missing
	Root          string // file system of this host: "/"
	Node          string // name of this host

	Deployer *deployer.Deployer // nil when there is no cluster
	Absent   error              // why there is none
	Now      func() time.Time
}

// Examine looks at everything.
func Examine(ctx context.Context, o Options) *schema.Diagnosis {
	x := &examination{Options: o, ctx: ctx, diagnosis: schema.Diagnosis{Checks: []schema.Check{}}}
	if x.Store == nil {
		x.skip("host", "store", "its archives and its node were not checked: '%s' on the host checks them", report.Run("deploy doctor"))
	} else {
		x.host()
	}
	if x.reach() {
		x.cluster()
		x.rights()
		x.records()
		x.activeVersions()
		x.loader()
		x.registry()
		x.preloaded()
	}
	return &x.diagnosis
}

// examination is one call of Examine.
type examination struct {
	Options
	ctx       context.Context //nolint:containedctx // lives for one call of Examine
	diagnosis schema.Diagnosis
	server    time.Duration // by how much the clock of the API server is ahead
}

// timeout bounds the wait for one check.
const timeout = 10 * time.Second

// Bounds of the findings of one kind: problems are sent to a webhook of the site, each once, so few are left out.
const (
	maxRows     = 20
	maxProblems = 200
)

// unlisted reports how many problems of a check are left out: one that an earlier run has found may be among them.
func (x *examination) unlisted(area, name string, found int) {
	if more := found - maxProblems; more > 0 {
		x.record(schema.Check{Area: area, Name: name, Result: schema.CheckProblem, Message: fmt.Sprintf("%d more are not listed", more), Unread: true})
	}
}

// record adds a check to the diagnosis.
func (x *examination) record(c schema.Check) {
	switch c.Result {
	case schema.CheckProblem:
		x.diagnosis.Problems++
	case schema.CheckWarning:
		x.diagnosis.Warnings++
	}
	x.diagnosis.Checks = append(x.diagnosis.Checks, c)
}

func (x *examination) add(result schema.CheckResult, area, name, message, hint string) {
	x.record(schema.Check{Area: area, Name: name, Result: result, Message: message, Hint: hint})
}

func (x *examination) ok(area, name, format string, args ...any) {
	x.add(schema.CheckOK, area, name, fmt.Sprintf(format, args...), "")
}

func (x *examination) skip(area, name, format string, args ...any) {
	x.add(schema.CheckSkipped, area, name, fmt.Sprintf(format, args...), "")
}

// failed reports an error with its hints. A check for which the user lacks permissions is only skipped.
func (x *examination) failed(area, name string, err error) { x.record(failure(area, name, "", err)) }

func failure(area, name, object string, err error) schema.Check {
	result := schema.CheckProblem
	if report.CodeOf(err) == report.Forbidden {
		result = schema.CheckSkipped
	}
	return schema.Check{Area: area, Name: name, Object: object, Result: result, Message: err.Error(), Hint: strings.Join(report.Hints(err), "; "), Unread: true}
}

// unread reports a check that did not run because of an error that another row reports.
func (x *examination) unread(area, name string, err error) {
	x.record(schema.Check{Area: area, Name: name, Result: schema.CheckSkipped, Message: "not checked: " + err.Error(), Unread: true})
}

// soon is the time before the end of a certificate from which on it is worth a word.
const soon = 30 * 24 * time.Hour

// certificate judges when the certificate of an object expires.
func (x *examination) certificate(area, object, what string, until time.Time, hint string) {
	c := schema.Check{Area: area, Name: "certificate", Object: object, Hint: hint}
	left, day := until.Sub(x.Now()), until.UTC().Format(time.DateOnly)
	switch {
	case until.IsZero():
		return
	case left <= 0:
		c.Result, c.Message = schema.CheckProblem, what+" has expired on "+day
	case left < soon:
		c.Result, c.Message = schema.CheckWarning, what+" expires on "+day
	default:
		c.Result, c.Message, c.Hint = schema.CheckOK, what+" is valid until "+day, ""
	}
	x.record(c)
}
