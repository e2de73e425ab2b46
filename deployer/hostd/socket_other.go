//go:build !linux

package hostd

import (
	"errors"
	"net"
	"os"
)

var errLinux = errors.New("a host that keeps archives runs Linux")

func peer(*net.UnixConn) (uint32, error) { return 0, errLinux }

func readAll(*net.UnixConn, int) ([]byte, *os.File, error) { return nil, nil, errLinux }

func sendAll(*net.UnixConn, []byte, *os.File) error { return errLinux }

func checkMedium(*os.File) error { return nil }

// Listen fails: sockets that pass files are for Linux only.
func Listen(string, int) (*net.UnixListener, error) { return nil, errLinux }

// Activated returns no socket: systemd runs on Linux only.
func Activated(func(string) string) (*net.UnixListener, error) { return nil, nil }
