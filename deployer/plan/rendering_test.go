package plan

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRenderingIsRemembered(t *testing.T) {
	yes, no, class := true, false, "nginx"
	before := map[string]string{SettingWebhook: "true", SettingIngressClass: "haproxy", settingHazards: "bind"}
	for _, test := range []struct {
		name string
		say  Rendering
		want map[string]string
	}{
		{"nothing said", Rendering{}, before},
		{"switched off", Rendering{Webhook: &no}, map[string]string{SettingIngressClass: "haproxy", settingHazards: "bind"}},
		{"switched on", Rendering{ClusterWide: &yes}, map[string]string{
			SettingWebhook: "true", SettingClusterWide: "true", SettingIngressClass: "haproxy", settingHazards: "bind",
		}},
		{"another class", Rendering{IngressClass: &class}, map[string]string{SettingWebhook: "true", SettingIngressClass: "nginx", settingHazards: "bind"}},
		{"one more hazard", Rendering{AcceptHazards: []string{"escalate", "bind"}}, map[string]string{
			SettingWebhook: "true", SettingIngressClass: "haproxy", settingHazards: "bind,escalate",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.say.merge(maps.Clone(before))); diff != "" {
				t.Error(diff)
			}
		})
	}
}
