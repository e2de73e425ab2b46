package plan

import (
	"context"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/kube/powers"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// PowersError refuses a plan whose objects have powers that are not approved.
type PowersError struct {
	Powers []schema.Power

	Changed bool // the run has changed something before
}

func (e *PowersError) Error() string { return strings.Join(e.Lines(), "\n  ") }

// Lines returns the powers as text, one in a line.
func (e *PowersError) Lines() []string { return powers.Summarize(e.Powers) }

// CanBeApproved reports whether the user can approve all of them before anything is changed.
func (e *PowersError) CanBeApproved() bool {
	return !e.Changed && !slices.ContainsFunc(e.Powers, func(p schema.Power) bool { return p.Need == schema.NeedRefused })
}

// Allowances returns the values of --allow that approve these powers, one for each object.
func (e *PowersError) Allowances() (list []string) {
	for _, p := range e.Powers {
		if text := Allowance(p); !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}

// Allowance names a power as --allow does: NAME, or NAME:KIND/[NAMESPACE/]NAME for that of one object.
func Allowance(p schema.Power) string {
	object := p.Object.Kind + "/" + p.Object.Name
	if p.Object.Namespace != "" {
		object = p.Object.Kind + "/" + p.Object.Namespace + "/" + p.Object.Name
	}
	return string(p.Name) + ":" + object
}

// exactAllowance is [Allowance] with a digest: it allows only what the power has now.
func exactAllowance(p schema.Power) string { return Allowance(p) + "@sha256:" + powers.Digest(p) }

// AllowMore allows powers in addition, as --allow does.
func (o *Options) AllowMore(allowances ...string) {
	o.Allow = slices.Concat(o.Allow, allowances)
}

// Approve allows powers in addition that the user was shown.
func (o *Options) Approve(list []schema.Power) {
	o.Approved = slices.Concat(o.Approved, list)
}

// Unallowed returns the powers that have to be approved and are not allowed in this run.
func (o Options) Unallowed(list []schema.Power) []schema.Power {
	allowed := consentOf(o, Rendering{})
	return slices.DeleteFunc(slices.Clone(list), func(p schema.Power) bool { return p.Need == schema.NeedShown || allowed.covers(p) })
}

// Unapproved returns the powers of a Solution that have to be approved and were not approved before, neither for the
// cluster nor for one of the namespaces.
func (p *Planner) Unapproved(ctx context.Context, solution string, list []schema.Power, namespaces ...string) ([]schema.Power, error) {
	var approved []schema.Power
	for _, namespace := range append([]string{""}, namespaces...) {
		state, err := p.Records.Engine.State(ctx, record.Key{Namespace: namespace, Name: solution})
		if err != nil {
			return nil, err
		}
		if state != nil {
			approved = append(approved, approvedPowers(state)...)
		}
	}
	return Options{}.Unallowed(uncovered(approved, list)), nil
}

// CheckAllow refuses values of --allow that do not name a power.
func CheckAllow(allow []string) error {
	var known []string
	for _, name := range schema.PowerNames() {
		known = append(known, string(name))
	}
	for _, text := range allow {
		name, _, _ := strings.Cut(text, ":")
		if slices.Contains(known, name) {
			continue
		}
		err := report.Errorf(report.Usage, "there is no power %q", name)
		if near := report.Nearest(name, known); near != "" {
			return err.WithHint("did you mean %s?", near)
		}
		return err.WithHint("the powers are %s", strings.Join(known, ", "))
	}
	return nil
}

// consent has the powers that the user approves in one run.
type consent struct {
	allow       []string
	approved    []schema.Power
	clusterWide bool
	hazards     []string
}

func consentOf(o Options, r Rendering) consent {
	return consent{
		allow: slices.Concat(o.Allow, r.Allow), approved: slices.Concat(o.Approved, r.Approved), clusterWide: r.ClusterWide != nil && *r.ClusterWide, hazards: r.AcceptHazards,
	}
}

// covers reports whether a power is allowed in this run. Powers that no approval allows never are.
func (c consent) covers(p schema.Power) bool {
	if p.Need == schema.NeedRefused {
		return false
	}
	return slices.Contains(c.allow, string(p.Name)) || slices.Contains(c.allow, Allowance(p)) || slices.Contains(c.allow, exactAllowance(p)) ||
		c.clusterWide && isClusterWide(p) || isRight(p) && slices.ContainsFunc(c.hazards, func(hazard string) bool { return hazardPowers[hazard] == p.Name }) ||
		len(powers.Uncovered(c.approved, []schema.Power{p})) == 0
}

// isClusterWide reports whether --cluster-wide approves a power: rights of the Solution's own accounts in the whole cluster,
// and a say in its requests. Rights of people and of the holders of other roles are not.
func isClusterWide(p schema.Power) bool {
	switch group, _, _ := strings.Cut(p.Object.APIVersion, "/"); group {
	case rbacv1.GroupName:
		return strings.HasPrefix(p.Object.Kind, "ClusterRole") && p.Name != schema.PowerRightsForPeople && strings.HasPrefix(p.Subject, "ServiceAccount ")
	case "admissionregistration.k8s.io", "apiregistration.k8s.io":
		return slices.Contains(overRequests, p.Name)
	}
	return false
}

// overRequests are the powers of webhooks, admission policies and APIServices that are a say in requests.
var overRequests = []schema.PowerName{
	schema.PowerInterceptsRequests, schema.PowerOpensToOutside, schema.PowerDefinesForeignAPIs, schema.PowerDefaultForEveryone,
}

// isRight reports whether a role or a binding gives a power to a subject: hazards stand for these. A change of the roles of others
// has no subject.
func isRight(p schema.Power) bool {
	return strings.HasPrefix(p.Object.APIVersion, "rbac.authorization.k8s.io/") && p.Subject != ""
}

// hazardPowers are the powers that each hazard stands for, by the names that --accept-hazard takes.
var hazardPowers = map[string]schema.PowerName{
	"everything": schema.PowerAllRights, "wildcard-verb": schema.PowerAllRights, "wildcard-resource": schema.PowerAllRights, "wildcard-group": schema.PowerAllRights,
	"escalate": schema.PowerChangeRights, "bind": schema.PowerChangeRights, "write-roles": schema.PowerChangeRights,
	"impersonate": schema.PowerActAsOthers, "service-account-token": schema.PowerActAsOthers,
	"read-secrets": schema.PowerReadSecrets, "pod-exec": schema.PowerRunPodsElsewhere, "node-proxy": schema.PowerControlNodes,
	"admission-webhooks": schema.PowerInterceptRequests, "write-crds": schema.PowerInterceptRequests,
	"certificates": schema.PowerIssueIdentities, "persistent-volumes": schema.PowerRawStorage, "write-namespaces": schema.PowerMarkNamespaces,
	"anybody": schema.PowerRightsForPeople,
}

// judged is a Solution in a namespace, or with an empty namespace in the cluster, whose powers are judged.
type judged struct {
	key     record.Key
	payload *render.Payload
	archive string // SHA-256 digest
	consent consent
	ran     bool // what is to be deployed was deployed here before, completely, and not removed since
	// monitoring holds the settings of the site.
	monitoring schema.Monitoring
	lookups    []schema.Power // of what its charts looked up while they were rendered
}

// judgedIn returns placements in each of their namespaces.
func (r *Run) judgedIn(list []*Placement) []judged {
	var all []judged
	for _, p := range list {
		for _, n := range p.Namespaces {
			key := record.Key{Namespace: n.Name, Name: p.Name}
			all = append(all, judged{
				key: key, lookups: r.lookups[key], payload: p.renderer.Payload, archive: p.Archive.SHA256, consent: consentOf(r.Options, p.merged[n.Name]),
				monitoring: p.renderer.Settings.Monitoring,
			})
		}
	}
	return all
}

// judgePowers judges what the planned releases of a run can do to the cluster. What exceeds what was approved for them, and is not
// allowed now, is refused, or in a dry run shown. What runs and is not changed needs no approval, and is not recorded as approved.
func (r *Run) judgePowers(ctx context.Context, list ...judged) error {
	var missing []schema.Power
	for _, j := range list {
		if err := CheckAllow(j.consent.allow); err != nil {
			return err
		}
		left, err := r.judgePowersOf(ctx, &j)
		if err != nil {
			return err
		}
		missing = append(missing, left...)
	}
	refused := slices.DeleteFunc(slices.Clone(missing), func(p schema.Power) bool { return p.Need != schema.NeedRefused })
	switch {
	case len(refused) > 0:
		return report.Errorf(report.Refused, "%s has powers that no approval allows:\n  %w", list[0].payload.Solution.ID(), &PowersError{Powers: refused}).
			WithHint("ask the vendor for an archive without it")
	case len(missing) == 0 || r.DryRun && !r.Refuse:
		return nil
	}
	what := "powers that are not approved"
	if len(r.Approved) > 0 {
		what = "powers beyond those that were approved"
	}
	return report.Errorf(report.Refused, "%s has %s:\n  %w", list[0].payload.Solution.ID(), what, &PowersError{Powers: missing}).
		WithHint("if you trust it with that: %s", Approving(missing))
}

// maxAllowances is how many objects a hint names.
const maxAllowances = 8

// Approving returns the options that allow powers: one for each object or, if these are many, one for each name of a power.
func Approving(list []schema.Power) report.Remedy {
	about, order := map[string][]string{}, []string{}
	for _, name := range []func(schema.Power) string{Allowance, func(p schema.Power) string { return string(p.Name) }} {
		about, order = map[string][]string{}, nil
		for _, p := range list {
			if about[name(p)] == nil {
				order = append(order, name(p))
			}
			about[name(p)] = append(about[name(p)], powers.Summarize([]schema.Power{p})...)
		}
		if len(order) <= maxAllowances {
			break
		}
	}
	var remedy report.Remedy
	for _, name := range order {
		remedy = remedy.With("allow", name).About(about[name]...)
	}
	return remedy
}

// Accepting returns the lines of a configuration that allow powers, for runs without a user. They stay there, so they have digests: a later
// version with more powers is not allowed by them.
func Accepting(list []schema.Power) string {
	var words []string
	for _, p := range list {
		if word := strconv.Quote(exactAllowance(p)); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return "accept: {powers: [" + strings.Join(words, ", ") + "]}"
}

// approvedPowers returns the powers that were approved for any version.
func approvedPowers(state *record.State) (list []schema.Power) {
	for _, a := range state.Approvals {
		list = append(list, a.Powers...)
	}
	return list
}

// judgePowersOf judges one Solution and puts its powers into the plan. It returns those that are not approved.
func (r *Run) judgePowersOf(ctx context.Context, j *judged) (missing []schema.Power, err error) {
	var objects, unchanged []*unstructured.Unstructured
	var own *engine.Plan
	for p := range r.plansOf(j.key) {
		if p.Release.Component == "" {
			own = p
		}
		objects, unchanged = append(objects, withTasks(&p.Release)...), append(unchanged, p.Unchanged()...)
	}
	owner, err := r.owner(ctx, j, objects)
	if err != nil {
		return nil, err
	}
	if owner.ForeignHost, err = r.foreignHosts(ctx, j.key, objects); err != nil {
		return nil, err
	}
	data := r.foreignData(ctx, j.key)
	owner.ForeignData, owner.ForeignClaims = data.solution, data.claims
	found, err := r.judge(ctx, &owner, j.key, objects)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		found = r.judgeWithFiles(owner, j)
	}
	if data.failure != nil {
		return nil, data.failure
	}
	wanted := append(found, j.lookups...)
	if len(wanted) == 0 || own == nil {
		return nil, nil
	}
	state, err := r.Records.Engine.State(ctx, j.key)
	if err != nil {
		return nil, err
	}
	approved := approvedPowers(state)
	unrecorded := powers.Uncovered(approved, wanted)
	if len(unrecorded) > 0 && !j.ran {
		missing = uncovered(slices.Concat(approved, powers.Judge(owner, judgeable(j.key, unchanged, ""))), wanted)
	}
	missing = slices.DeleteFunc(missing, j.consent.covers)
	isMissing := func(p schema.Power) bool {
		return len(uncovered(missing, []schema.Power{p})) == 0 && p.Need != schema.NeedShown
	}
	for _, p := range wanted {
		r.Powers = append(r.Powers, schema.PlannedPower{Power: p, Solution: j.key.Name, Approved: !isMissing(p)})
	}
	if fresh := slices.DeleteFunc(unrecorded, func(p schema.Power) bool { return !j.consent.covers(p) }); len(fresh) > 0 {
		own.Release.Approval = &schema.PowerApproval{Version: own.Release.Version, Archive: j.archive, Powers: fresh}
	}
	return missing, nil
}

// uncovered is [powers.Uncovered] where what no approval allows is covered by what runs.
func uncovered(approved, wanted []schema.Power) []schema.Power {
	return slices.DeleteFunc(powers.Uncovered(approved, wanted), func(p schema.Power) bool {
		if p.Need != schema.NeedRefused {
			return false
		}
		p.Need = schema.NeedApproval
		return len(powers.Uncovered(approved, []schema.Power{p})) == 0
	})
}
