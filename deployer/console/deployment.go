package console

import (
	_ "embed" // the objects
	"encoding/json"
	"strings"
	"text/template"
	"unicode"

	"github.com/solutionctl/solutionctl/schema/report"
)

//go:embed deployment.yaml
var deploymentObjects string

// deploymentNamespace is that of the console in a cluster.
const deploymentNamespace = "solutionctl-console"

// ProviderFiles are files of an identity provider; "" is none.
type ProviderFiles struct {
	Secret string // of the client
	CA     string // certificates in PEM
}

// Deployment is a console in a cluster: two replicas behind a Service, which have no rights.
type Deployment struct {
	Namespace string
	Command   []string // of the pods
	Secrets   []string // commands that create the Secrets of the pods
	Provider  bool     // they mount files of an identity provider
}

// Deployment returns the objects of a console with these options in a cluster. arguments are the options without names
// of files; pods get the content of the files from Secrets.
func (o ServeOptions) Deployment(arguments []string, p ProviderFiles) (*Deployment, error) {
	if err := o.checkUnattended(); err != nil {
		return nil, err
	}
	o.Listen = ":8443"
	if o.Certificate == "" && o.Key == "" {
		o.Certificate, o.Key = "tls.crt", "tls.key"
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	command := []string{
		"solutionctl", "deploy", "ui", "--progress=plain", "--kubeconfig=/etc/console/config/kubeconfig", "--listen=" + o.Listen,
		"--tls-cert=/etc/console/tls/tls.crt", "--tls-key=/etc/console/tls/tls.key", "--session-key-file=/etc/console/keys/session-keys", "--export=/data",
	}
	if p.Secret != "" {
		command = append(command, "--oidc-client-secret=/etc/console/provider/client-secret")
	}
	if p.CA != "" {
		command = append(command, "--oidc-ca=/etc/console/provider/ca.crt")
	}
	d := &Deployment{deploymentNamespace, append(command, arguments...), o.secrets(p), p != ProviderFiles{}}
	if strings.ContainsFunc(strings.Join(d.Secrets, ""), unicode.IsControl) {
		return nil, report.Errorf(report.Usage, "a comment cannot name a file with a control character")
	}
	return d, nil
}

// YAML returns the objects, for 'kubectl apply', that run the console from an image. Comments list the other
// requirements.
func (d *Deployment) YAML(image string) (string, error) {
	quote := func(s string) (string, error) {
		data, err := json.Marshal(s)
		return string(data), err
	}
	objects, err := template.New("deployment").Funcs(template.FuncMap{"quote": quote}).Parse(deploymentObjects)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = objects.Execute(&text, struct {
		*Deployment
		Image string
	}{d, image})
	return text.String(), err
}

// secrets returns the commands that create the Secrets of the pods.
func (o ServeOptions) secrets(p ProviderFiles) []string {
	const create = "kubectl -n " + deploymentNamespace + " create secret "
	keys := "openssl rand -base64 32 | " + create + "generic console-keys --from-file session-keys=/dev/stdin"
	if o.SessionKeys != "" {
		keys = create + "generic console-keys --from-file " + report.ShellWord("session-keys="+o.SessionKeys)
	}
	commands := []string{create + "tls console-tls --cert " + report.ShellWord(o.Certificate) + " --key " + report.ShellWord(o.Key), keys}
	var files string
	if p.Secret != "" {
		files += " --from-file " + report.ShellWord("client-secret="+p.Secret)
	}
	if p.CA != "" {
		files += " --from-file " + report.ShellWord("ca.crt="+p.CA)
	}
	if files != "" {
		commands = append(commands, create+"generic console-provider"+files)
	}
	return commands
}
