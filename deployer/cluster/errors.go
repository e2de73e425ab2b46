package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// What a caller can do something about; use errors.Is.
var (
	// ErrExists means that an object that was to be created is there already.
	ErrExists = errors.New("it exists already")
	// ErrChanged means that an object is gone or no longer what it was when it was read: read it again.
	ErrChanged = errors.New("it was changed meanwhile")
	// ErrFull means that a ConfigMap or a Secret would have more than [MaxData].
	ErrFull = errors.New("it is full")
)

// failure is our sentence about an error of the API server or a library, which it wraps.
type failure struct {
	text string
	kind error // ErrExists, ErrChanged, ErrFull, ErrNoKind or nil
	err  error
}

func (f *failure) Error() string { return f.text }

func (f *failure) Unwrap() []error {
	if f.kind == nil {
		return []error{f.err}
	}
	return []error{f.kind, f.err}
}

// what names what a request does, as the beginning of a sentence.
func (r request) what() string {
	words := map[string]string{"get": "read", "patch": "change"}
	verb := cmp.Or(words[r.verb], r.verb)
	switch {
	case r.format == applyFormat && r.verb == "patch":
		verb = "apply"
	case r.about != "":
		return r.about
	}
	switch {
	case r.name == "" && r.namespace == "":
		return verb + " " + r.resource.GroupResource().String()
	case r.name == "":
		return verb + " " + r.resource.GroupResource().String() + " in namespace " + r.namespace
	default:
		return verb + " " + Name(r.kind.Kind, r.namespace, r.name)
	}
}

// Name writes the name of an object for people: "Deployment demo/web", "Namespace demo".
func Name(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return kind + " " + name
}

// translate turns the error of a request into one with a code, a sentence and, where the user can act, a hint.
func (c *Cluster) translate(ctx context.Context, r request, err error) error {
	if ended := c.ended(ctx, r, err); ended != nil {
		return ended
	}
	if _, translated := errors.AsType[*report.Error](err); translated || errors.Is(err, ErrNoKind) {
		return err
	}
	status, refused := errors.AsType[*apierrors.StatusError](err)
	switch {
	case !refused && r.about != "": // how far it came is of no interest
		return c.noAnswer(err)
	case !refused:
		return fmt.Errorf("%s: %w", r.what(), c.noAnswer(err))
	}
	said := status.ErrStatus
	// A code, what we say about it, and the sentinel for the caller.
	say := func(code report.Code, kind error, format string, args ...any) *report.Error {
		text := r.what() + ": " + fmt.Sprintf(format, args...)
		return &report.Error{Code: code, Err: &failure{text: text, kind: kind, err: err}}
	}
	if m := denied.FindStringSubmatch(said.Message); m != nil {
		refusal := say(report.Refused, nil, "%s of the cluster refuses it: %s", cmp.Or(m[1], m[3]), cmp.Or(m[2], m[4], "no reason given"))
		if r.kind == LeaseKind { // of a lock, without which nothing can be done about it
			return refusal.WithHint("'%s' names what refuses it, and how to remove that", report.Run("deploy doctor"))
		}
		return refusal
	}
	switch {
	case apierrors.IsUnauthorized(err):
		return say(report.Unauthenticated, nil, "the API server does not know the user").WithHint("%s", c.howToLogIn())
	case apierrors.IsForbidden(err):
		return forbidden(r, said, say)
	case apierrors.IsAlreadyExists(err):
		return say(report.Conflict, ErrExists, "it exists already")
	case apierrors.IsConflict(err):
		return conflict(r, said, say)
	case apierrors.IsInvalid(err) && isOther(said):
		return say(report.Conflict, ErrChanged, "it was deleted and made again meanwhile").WithHint("run the command again")
	case apierrors.IsInvalid(err) && isFull(r, said):
		return say(report.Invalid, ErrFull, "its values have more than %d KiB together, which is all that a %s can have", MaxData>>10, r.kind.Kind)
	case apierrors.IsInvalid(err):
		return say(report.Invalid, nil, "the API server does not accept it: %s", causes(said))
	case apierrors.IsBadRequest(err), apierrors.IsUnsupportedMediaType(err), apierrors.IsMethodNotSupported(err), isNoPatch(err):
		return say(report.Invalid, nil, "the API server does not accept it: %s", withoutValue.ReplaceAllString(said.Message, ""))
	case apierrors.IsRequestEntityTooLargeError(err):
		return say(report.Invalid, nil, "the object is larger than the API server accepts")
	case apierrors.IsNotFound(err):
		return c.notFound(r, said, say)
	case apierrors.IsTooManyRequests(err):
		return say(report.Unavailable, nil, "the API server has no time for us: %s", said.Message).
			WithHint("run the command again later, or with a limit such as --qps 50")
	}
	if webhook := webhookOf(said.Message); webhook != nil {
		return say(report.Unavailable, nil, "admission webhook %q of the cluster does not work: %s", webhook[0], webhook[1]).
			WithHint("repair what serves the webhook, or delete its webhook configuration if it is not needed any more; '%s' names it", report.Run("deploy doctor"))
	}
	return say(report.Unavailable, nil, "the API server cannot do it now: %s", said.Message)
}

// ended returns the error of a request whose context has ended, nil if it has not.
func (c *Cluster) ended(ctx context.Context, r request, err error) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		text := r.what() + ": the time is up"
		if !errors.Is(err, context.DeadlineExceeded) {
			text += ": " + unreachable(err)
		}
		return &report.Error{Code: report.Timeout, Err: &failure{text: text, kind: ctx.Err(), err: err}}
	case c.changed.Load():
		return report.Errorf(report.Interrupted, "%s: interrupted: %w", r.what(), context.Cause(ctx))
	default:
		return fmt.Errorf("%s: %w", r.what(), context.Cause(ctx))
	}
}

type sayFunc = func(code report.Code, kind error, format string, args ...any) *report.Error

// The API server describes what it forbids in English only.
var (
	cannot       = lazyregexp.New(`User "([^"]*)" cannot (\S+) resource "([^"]*)" in API group "([^"]*)"(?: in the namespace "([^"]*)")?`)
	impersonates = lazyregexp.New(`User "([^"]*)" cannot impersonate\S* `)
	cannotPath   = lazyregexp.New(`User "([^"]*)" cannot (\S+) path "([^"]*)"`)
	escalation   = lazyregexp.New(`(?s)user "([^"]*)" .*is attempting to grant RBAC permissions not currently held:\n(.*)`)
	heldRule     = lazyregexp.New(`\{[^}]*\}`)
	ruleField    = lazyregexp.New(`(\w+):\[([^\]]*)\]`)
	quota        = lazyregexp.New(`exceeded quota: ([^,]+), requested: (.*), used: (.*), limited: (.*)`)
	webhook      = lazyregexp.New(`(?s)failed calling webhook "([^"]*)": (.*)|conversion webhook for (\S+) failed: (.*)`)
	denied       = lazyregexp.New(`(?s)admission webhook "([^"]*)" denied the request(?:: (.*)| without explanation)|ValidatingAdmissionPolicy '([^']*)' .*denied request: (.*)`)
)

// forbidden explains a 403, which means many things.
func forbidden(r request, said metav1.Status, say sayFunc) error {
	if m := impersonates.FindStringSubmatch(said.Message); m != nil {
		return say(report.Forbidden, nil, "user %q is not allowed to impersonate other users", m[1]).
			WithHint("an administrator can allow it with this rule of a ClusterRole:\n%s", Rules(Permission{Verb: "impersonate", Resource: "users"}))
	}
	if m := cannot.FindStringSubmatch(said.Message); m != nil {
		p := Permission{Verb: m[2], Group: m[4], Namespace: m[5]}
		p.Resource, p.Subresource, _ = strings.Cut(m[3], "/")
		where, role := "", "a ClusterRole"
		if p.Namespace != "" {
			where, role = " in namespace "+p.Namespace, "a Role in namespace "+p.Namespace+" or a ClusterRole"
		}
		group := ""
		if p.Group != "" {
			group = " of " + p.Group
		}
		wanted := []Permission{p}
		if r.format == applyFormat { // both are needed in the end
			wanted = []Permission{p, p}
			wanted[0].Verb, wanted[1].Verb = "create", "patch"
		}
		return say(report.Forbidden, nil, "user %q has no permission to %s %s%s%s", m[1], p.Verb, m[3], group, where).
			WithHint("an administrator can allow it with this rule of %s:\n%s", role, Rules(wanted...))
	}
	if m := cannotPath.FindStringSubmatch(said.Message); m != nil {
		return say(report.Forbidden, nil, "user %q has no permission to %s path %s", m[1], m[2], m[3])
	}
	if m := escalation.FindStringSubmatch(said.Message); m != nil {
		return say(report.Forbidden, nil, "user %q cannot grant permissions that they do not have themselves", m[1]).
			WithHint("an administrator can give them to %q, as these rules:\n%s", m[1], heldRules(m[2]))
	}
	if m := quota.FindStringSubmatch(said.Message); m != nil {
		return say(report.Refused, nil, "quota %s of namespace %s is used up: this needs %s, the limit is %s and %s is used", m[1], r.namespace, m[2], m[4], m[3]).
			WithHint("raise the ResourceQuota %s or delete objects that are not needed", Name("", r.namespace, m[1])[1:])
	}
	if apierrors.HasStatusCause(&apierrors.StatusError{ErrStatus: said}, "NamespaceTerminating") {
		return say(report.InUse, nil, "namespace %s is being deleted", r.namespace).
			WithHint("wait until it is deleted; '%s' shows its finalizers", report.Run("deploy doctor"))
	}
	_, reason, found := strings.Cut(said.Message, " is forbidden: ")
	if !found {
		reason = said.Message
	}
	if strings.HasPrefix(reason, "violates PodSecurity") {
		return say(report.Refused, nil, "it %s", reason).
			WithHint("an administrator can set the label pod-security.kubernetes.io/enforce of namespace %s to a lower level", r.namespace)
	}
	return say(report.Refused, nil, "the cluster refuses it: %s", reason)
}

// heldRules translates the rules that the API server lists as Go structures into YAML.
func heldRules(text string) string {
	names := map[string]string{
		"APIGroups": "apiGroups", "Resources": "resources", "ResourceNames": "resourceNames", "NonResourceURLs": "nonResourceURLs", "Verbs": "verbs",
	}
	var rules []string
	for _, rule := range heldRule.FindAllString(text, -1) {
		var fields []string
		for _, m := range ruleField.FindAllStringSubmatch(rule, -1) {
			if m[2] != "" {
				fields = append(fields, names[m[1]]+": ["+strings.ReplaceAll(m[2], `" "`, `", "`)+"]")
			}
		}
		rules = append(rules, "- "+strings.Join(fields, "\n  "))
	}
	return strings.Join(rules, "\n")
}

// conflict translates a Conflict (409): an object that exists already, a stale one, or fields of other managers.
func conflict(r request, said metav1.Status, say sayFunc) error {
	var fields []string
	if said.Details != nil {
		for _, cause := range said.Details.Causes {
			if cause.Type == metav1.CauseTypeFieldManagerConflict {
				fields = append(fields, cause.Field+" ("+strings.TrimPrefix(cause.Message, "conflict with ")+")")
			}
		}
	}
	switch {
	case r.verb == "create":
		return say(report.Conflict, ErrExists, "it exists already")
	case len(fields) == 0:
		return say(report.Conflict, ErrChanged, "it was changed or deleted meanwhile").WithHint("run the command again")
	}
	return say(report.Conflict, nil, "other managers own these fields: %s", report.Several(fields)).
		WithHint("remove the fields from what the other manager applies, or take them with %s",
			report.Accept("force-conflicts").About(Name(r.kind.Kind, r.namespace, r.name)+": "+report.Several(fields)))
}

func (c *Cluster) notFound(r request, said metav1.Status, say sayFunc) error {
	switch {
	case said.Details == nil, said.Details.Name == "", apierrors.HasStatusCause(&apierrors.StatusError{ErrStatus: said}, metav1.CauseTypeUnexpectedServerResponse):
		c.Refresh() // the path itself is unknown: the kind is no longer what it was
		return say(report.Failure, ErrNoKind, "the cluster has no such kind")
	case said.Details.Kind == "namespaces" && r.kind.Kind != "Namespace":
		return say(report.NotFound, nil, "namespace %s does not exist", said.Details.Name)
	case r.verb == "update" || r.verb == "patch":
		return say(report.Conflict, ErrChanged, "it was deleted meanwhile").WithHint("run the command again")
	default:
		return say(report.NotFound, nil, "it does not exist")
	}
}

// isNoPatch reports whether the API server cannot parse the applied object, which it reports as an internal error.
func isNoPatch(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed to create typed patch object") ||
		apierrors.IsInternalError(err) && strings.Contains(err.Error(), "field not declared in schema")
}

// withoutValue finds what a field has instead of what it should, in the notation of the API server's own source. It may be secret.
var withoutValue = lazyregexp.New(`, got &value\.valueUnstructured\{.*\}`)

// isOther reports whether what the API server does not accept is the UID: a server-side apply meets another object of the
// same name.
func isOther(said metav1.Status) bool {
	return said.Details != nil && slices.ContainsFunc(said.Details.Causes, func(cause metav1.StatusCause) bool { return cause.Field == "metadata.uid" })
}

// causes lists what the API server does not accept.
func causes(said metav1.Status) string {
	if said.Details == nil || len(said.Details.Causes) == 0 {
		return said.Message
	}
	var problems []string
	for _, cause := range said.Details.Causes {
		problem := withoutLongValue(cause.Message)
		if cause.Field != "" {
			problem = cause.Field + ": " + problem
		}
		if !slices.Contains(problems, problem) {
			problems = append(problems, problem)
		}
	}
	return report.Several(problems)
}

// withoutLongValue leaves out the value that the API server does not accept if it is a whole object, in the notation of its
// own source: what matters comes after it.
func withoutLongValue(message string) string {
	const invalid, enough = "Invalid value: ", 100
	end := strings.LastIndex(message, ": ")
	if !strings.HasPrefix(message, invalid) || end < len(invalid)+enough {
		return message
	}
	return message[end+2:]
}

// webhookOf returns the name of the failed webhook in a message, and the reason, or nil.
func webhookOf(message string) []string {
	m := webhook.FindStringSubmatch(message)
	if m == nil {
		return nil
	}
	return []string{cmp.Or(m[1], m[3]), cmp.Or(m[2], m[4])}
}

// howToLogIn returns a hint for a user whom the API server does not know.
func (c *Cluster) howToLogIn() string {
	if expired := c.certificateExpired(); expired != "" {
		return expired
	}
	switch {
	case c.options.Token != nil:
		return "log in again: the token is not valid, or no longer, or not for this API server"
	case c.source.file == "":
		return "the token of the pod's service account is not valid: has the service account been deleted?"
	}
	return fmt.Sprintf("log in again: the certificate or token of user %q in %s is not valid, or no longer", c.source.user, c.source)
}

// certificateExpired returns a sentence on the end of the user's certificate, "" if it is valid or there is none.
func (c *Cluster) certificateExpired() string {
	until := c.certificateUntil()
	if until.IsZero() || c.options.Now().Before(until) {
		return ""
	}
	return fmt.Sprintf("the certificate of user %q in %s expired on %s: renew it, on a control-plane node with 'kubeadm certs renew'",
		c.source.user, c.source, day(until))
}

// certificateUntil returns the end of the user's certificate, zero if there is none.
func (c *Cluster) certificateUntil() time.Time {
	var pair tls.Certificate
	var err error
	if len(c.config.CertData) > 0 {
		pair, err = tls.X509KeyPair(c.config.CertData, c.config.KeyData)
	} else {
		pair, err = tls.LoadX509KeyPair(c.config.CertFile, c.config.KeyFile)
	}
	if err != nil || pair.Leaf == nil {
		return time.Time{}
	}
	return pair.Leaf.NotAfter
}

// noAnswer explains why there is no answer at all.
func (c *Cluster) noAnswer(err error) error {
	say := func(format string, args ...any) *report.Error {
		text := fmt.Sprintf("API server %s: ", c.Server()) + fmt.Sprintf(format, args...)
		return &report.Error{Code: report.Unavailable, Err: &failure{text: text, err: err}}
	}
	var (
		unknown x509.UnknownAuthorityError
		host    x509.HostnameError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
		alert   tls.AlertError
		dns     *net.DNSError
	)
	switch {
	case errors.As(err, &unknown):
		return say("its certificate is not signed by the authority in %s", c.source).
			WithHint("take a new kubeconfig from the cluster: its authority has changed, or this is another server")
	case errors.As(err, &host):
		return say("its certificate is for another name: %v", host).
			WithHint("use an address that the certificate is for, or set tls-server-name in the kubeconfig")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return say("its certificate is valid from %s to %s only", day(invalid.Cert.NotBefore), day(invalid.Cert.NotAfter)).
			WithHint("compare this host's clock; if it is right, renew the certificate, on a control-plane node with 'kubeadm certs renew'")
	case errors.As(err, &alert):
		if expired := c.certificateExpired(); expired != "" {
			return say("it does not accept the user's certificate").WithHint("%s", expired)
		}
		return say("it does not accept the user's certificate: %v", alert).WithHint("take a new kubeconfig from the cluster")
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return say("what answers there does not speak TLS").WithHint("check the address in %s", c.source)
	case errors.As(err, &dns):
		return say("its name cannot be resolved: %v", dns).WithHint("check the address in %s", c.source)
	case errors.Is(err, errNoAnswer):
		return say("%v", errNoAnswer).WithHint("check that the API server has enough memory and that its etcd works")
	default:
		return say("it does not answer: %s", unreachable(err)).
			WithHint("check that the API server runs and that %s has its address", c.source)
	}
}

func day(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// unreachable describes a network error in few words, without the address, which is named elsewhere.
func unreachable(err error) string {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number.Error()
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return "no answer in time"
	}
	return err.Error()
}
