package main

import (
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/settings"
)

// harmless are the flags that accept neither a loss nor a risk: variables and the configuration file may set them.
const harmless = `
access-log add-image advisory after against all applications archive as as-group attach-timestamp bundle ca cache-dir certificate certs-dir
changed check colour component config container context dashboard-label dashboard-namespace deep delta-from description detect diff disable drift
dry-run enable endorsed-by endpoint env environment events exit-status expect expires explain export extract fail-on file filename
fix folder-annotation follow format from full have header-file host host-socket if-configured image images impersonate impersonate-group
implant-md5 importers in-place ingress-class installers jobs key-id kind kubeconfig kubernetes-version label listen local
lock-wait login logs max-transfers members metrics-listen minimum-version mirror mirror-origins monitoring-label mount name
namespace next nginx-dir no-cluster no-lint no-patches no-wait node nodes notified notify-url oidc-ca oidc-client-id oidc-client-secret oidc-issuer on-failure operator
origin output parameters part password-file peer plain-http plan platform pod port powers previous print print-monitoring print-timer
print-unit profile progress prometheus provenance protect-crds push-ca push-to qps quiet records registry-mode replica-timeout require-replicas result revision root root-key rule-label rules
runtime sbom service session-key-file set sha256sum sign-key since size socket solution solutions-file state statement-only store tail textfile
timeout tls-cert tls-key tls-name to trust-dir uploads values verbose version volume-id wait wait-apps watch webhook why with
yes`

// TestEveryFlagIsClassified walks all commands: each flag either accepts a loss or a risk, and neither a variable nor the
// configuration file sets it, or is listed as harmless.
func TestEveryFlagIsClassified(t *testing.T) {
	unseen := map[string]bool{}
	for _, name := range slices.Concat(approvals, unlikeApprovals, strings.Fields(harmless)) {
		unseen[name] = true
	}
	listed := maps.Clone(unseen)
	walkFlags(newTestRoot(), func(cmd *cobra.Command, flag *pflag.Flag) {
		delete(unseen, flag.Name)
		delete(unseen, strings.TrimPrefix(cmd.CommandPath(), "solutionctl ")+" --"+flag.Name)
		switch {
		case isApproval(cmd, flag.Name) && settings.IsSetting(flag):
			t.Errorf("%s --%s accepts a loss or a risk, and a variable can set it", cmd.CommandPath(), flag.Name)
		case !listed[flag.Name]:
			t.Errorf("%s --%s: decide whether it accepts a loss or a risk: list it in approvals, or here as harmless", cmd.CommandPath(), flag.Name)
		}
	})
	if len(unseen) > 0 {
		t.Errorf("listed, and no command has them: %s", strings.Join(slices.Sorted(maps.Keys(unseen)), ", "))
	}
}

// TestApprovalsComeFromTheCommandLine sets every approval by variables: no command takes one of them.
func TestApprovalsComeFromTheCommandLine(t *testing.T) {
	variables := map[string]string{}
	for _, flag := range approvals {
		variables["SOLUTIONCTL_"+strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))] = "true"
	}
	a := &app{cli.New(strings.NewReader(""), io.Discard, io.Discard, func(name string) string { return variables[name] }, nil, "1.2.3")}
	root := newRootCommand(a)
	if _, err := a.Settings.List(); err != nil {
		t.Fatal(err)
	}
	walkFlags(root, func(cmd *cobra.Command, flag *pflag.Flag) {
		if isApproval(cmd, flag.Name) && flag.Changed {
			t.Errorf("%s --%s is %s", cmd.CommandPath(), flag.Name, flag.Value)
		}
	})
}

func noVariables(string) string { return "" }

// walkFlags visits the flags that each command of a tree defines itself.
func walkFlags(cmd *cobra.Command, visit func(*cobra.Command, *pflag.Flag)) {
	cmd.NonInheritedFlags().VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "help" {
			visit(cmd, flag)
		}
	})
	for _, child := range cmd.Commands() {
		walkFlags(child, visit)
	}
}
