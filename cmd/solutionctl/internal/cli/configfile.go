package cli

import (
	"os"
	"path/filepath"
	"runtime"
)

// ConfigDir is the directory of the configuration file: of the host for root, of the user for others.
func (a *App) ConfigDir() string {
	return filepath.Dir(defaultConfigFile(runtime.GOOS, os.Geteuid(), a.Getenv))
}

// defaultConfigFile returns the path of the configuration file unless --config names another one: one place for the administrator of
// a host, one for everybody else (XDG Base Directory Specification).
func defaultConfigFile(system string, user int, getenv func(string) string) string {
	switch {
	case user == 0:
		return "/etc/solutionctl/config.yaml"
	case getenv("XDG_CONFIG_HOME") != "":
		return filepath.Join(getenv("XDG_CONFIG_HOME"), "solutionctl", "config.yaml")
	case system == "windows":
		return filepath.Join(getenv("AppData"), "solutionctl", "config.yaml")
	default:
		return filepath.Join(getenv("HOME"), ".config", "solutionctl", "config.yaml")
	}
}
