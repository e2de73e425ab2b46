package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// ConfigDir is the directory of the configuration file: of the host for root, of the user for others. It is "" if the user has none.
func (a *App) ConfigDir() string {
	return strings.TrimSuffix(defaultConfigFile(runtime.GOOS, os.Geteuid(), a.Getenv), configFile)
}

// configFile is the name of the configuration file in its directory.
const configFile = string(filepath.Separator) + "config.yaml"

// defaultConfigFile returns the path of the configuration file unless --config names another one: one place for the administrator of
// a host, one for each user (XDG Base Directory Specification). It is "" without such a place, and never in the current directory.
func defaultConfigFile(system string, user int, getenv func(string) string) string {
	dir := filepath.Join(getenv("HOME"), ".config")
	switch xdg := getenv("XDG_CONFIG_HOME"); {
	case user == 0:
		dir = "/etc"
	case filepath.IsAbs(xdg):
		dir = xdg
	case system == "windows":
		dir = getenv("AppData")
	}
	if !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Join(dir, "solutionctl") + configFile
}
