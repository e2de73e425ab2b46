package hostd

import (
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/solutionctl/solutionctl/schema/report"
)

// peer returns the user of the program at the other end, from the kernel.
func peer(c *net.UnixConn) (uid uint32, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var who *unix.Ucred
	if failure := raw.Control(func(fd uintptr) { who, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); failure != nil {
		return 0, failure
	}
	if err != nil {
		return 0, err
	}
	return who.Uid, nil
}

// readAll reads until the other side ends, and takes one descriptor that comes with the first bytes. Any others are closed.
func readAll(c *net.UnixConn, limit int) (data []byte, file *os.File, err error) {
	defer func() {
		if err != nil && file != nil {
			err = errors.Join(err, file.Close())
			file = nil
		}
	}()
	buffer, rights := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4*4))
	for {
		n, more, flags, _, err := c.ReadMsgUnix(buffer, rights)
		if more > 0 {
			came, failure := descriptors(rights[:more])
			switch {
			case failure != nil || flags&unix.MSG_CTRUNC != 0 || len(came) != 1 || file != nil || len(data) > 0:
				for _, f := range came {
					_ = f.Close()
				}
				return nil, file, report.Errorf(report.Usage, "one file comes with the beginning of a request, or none")
			default:
				file = came[0]
			}
		}
		data = append(data, buffer[:n]...)
		switch {
		case len(data) > limit:
			return nil, file, report.Errorf(report.Usage, "a request has %d bytes at most", limit)
		case errors.Is(err, io.EOF) || err == nil && n == 0:
			return data, file, nil
		case err != nil:
			return nil, file, err
		}
	}
}

// descriptors are the files that came with a message.
func descriptors(rights []byte) (files []*os.File, err error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		numbers, failure := unix.ParseUnixRights(&m)
		err = errors.Join(err, failure)
		for _, fd := range numbers {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "archive"))
		}
	}
	return files, err
}

// sendAll sends a request with a file, and ends this side.
func sendAll(c *net.UnixConn, data []byte, file *os.File) error {
	if file != nil {
		raw, err := file.SyscallConn()
		if err != nil {
			return err
		}
		failure := raw.Control(func(fd uintptr) { _, _, err = c.WriteMsgUnix(data[:1], unix.UnixRights(int(fd)), nil) })
		if err = errors.Join(failure, err); err != nil {
			return err
		}
		data = data[1:]
	}
	_, err := c.Write(data)
	return errors.Join(err, c.CloseWrite())
}

// checkMedium refuses a file system that a program of a user answers for: reading from it could wait for ever.
func checkMedium(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var system unix.Statfs_t
	if failure := raw.Control(func(fd uintptr) { err = unix.Fstatfs(int(fd), &system) }); failure != nil {
		return failure
	}
	if err == nil && system.Type == unix.FUSE_SUPER_MAGIC {
		err = report.Errorf(report.Usage, "the archive lies on a file system in user space")
	}
	return err
}

// Listen creates the socket, for its owner and the group, which is -1 for that of the process. An unused socket of an
// earlier run is replaced; one with a listener is not.
func Listen(path string, group int) (*net.UnixListener, error) {
	if c, err := net.Dial("unix", path); err == nil { //nolint:noctx // answered at once or not at all
		_ = c.Close()
		return nil, report.Errorf(report.Conflict, "another program listens at %s already", path).WithHint("stop that program first")
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSocket {
		if err = os.Remove(path); err != nil {
			return nil, err
		}
	}
	mask := syscall.Umask(0o177) // no other user can connect before the group is set
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	syscall.Umask(mask)
	if err != nil {
		return nil, report.As(report.Unavailable, err).WithHint("the directory has to exist: --listen names another path")
	}
	if err = errors.Join(os.Chown(path, -1, group), os.Chmod(path, 0o660)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Activated returns the socket that systemd has opened for this process, by its environment; nil where there is none.
func Activated(getenv func(string) string) (*net.UnixListener, error) {
	if getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	if getenv("LISTEN_FDS") != "1" {
		return nil, report.Errorf(report.Usage, "systemd gave %s sockets, one is needed", getenv("LISTEN_FDS"))
	}
	const first = 3
	unix.CloseOnExec(first)
	f := os.NewFile(first, "socket")
	l, err := net.FileListener(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	socket, ok := l.(*net.UnixListener)
	if !ok {
		return nil, errors.Join(report.Errorf(report.Usage, "what systemd gave is not a Unix socket"), l.Close())
	}
	socket.SetUnlinkOnClose(false) // it is systemd's
	return socket, nil
}
