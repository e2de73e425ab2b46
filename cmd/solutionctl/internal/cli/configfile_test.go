package cli

import "testing"

func TestDefaultConfigFile(t *testing.T) {
	for _, test := range []struct {
		name, system string
		user         int
		env          map[string]string
		want         string
	}{
		{"root", "linux", 0, map[string]string{"HOME": "/root", "XDG_CONFIG_HOME": "/x"}, "/etc/solutionctl/config.yaml"},
		{"user", "linux", 1000, map[string]string{"HOME": "/home/a"}, "/home/a/.config/solutionctl/config.yaml"},
		{"XDG", "linux", 1000, map[string]string{"HOME": "/home/a", "XDG_CONFIG_HOME": "/x"}, "/x/solutionctl/config.yaml"},
		{"a relative XDG", "linux", 1000, map[string]string{"HOME": "/home/a", "XDG_CONFIG_HOME": "x"}, "/home/a/.config/solutionctl/config.yaml"},
		{"no home", "linux", 1000, nil, ""},
		{"a relative home", "linux", 1000, map[string]string{"HOME": "."}, ""},
		{"Windows without AppData", "windows", -1, map[string]string{"HOME": "/home/a"}, ""},
		{"Windows", "windows", -1, map[string]string{"AppData": "/a"}, "/a/solutionctl/config.yaml"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := defaultConfigFile(test.system, test.user, func(name string) string { return test.env[name] })
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
