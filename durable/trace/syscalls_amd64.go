package trace

import "golang.org/x/sys/unix"

// oldChanges are system calls that only older processors have.
var oldChanges = map[uint64]change{
	unix.SYS_OPEN:    {name: "open", paths: [][2]int{{workingDirectory, 0}}, only: creates(1)},
	unix.SYS_CREAT:   {name: "open", paths: [][2]int{{workingDirectory, 0}}},
	unix.SYS_MKDIR:   {name: "mkdir", paths: [][2]int{{workingDirectory, 0}}},
	unix.SYS_RMDIR:   {name: "unlink", paths: [][2]int{{workingDirectory, 0}}},
	unix.SYS_UNLINK:  {name: "unlink", paths: [][2]int{{workingDirectory, 0}}},
	unix.SYS_RENAME:  {name: "rename", paths: [][2]int{{workingDirectory, 0}, {workingDirectory, 1}}},
	unix.SYS_LINK:    {name: "link", paths: [][2]int{{workingDirectory, 0}, {workingDirectory, 1}}},
	unix.SYS_SYMLINK: {name: "symlink", paths: [][2]int{{workingDirectory, 1}}},
	unix.SYS_CHMOD:   {name: "chmod", paths: [][2]int{{workingDirectory, 0}}},
	unix.SYS_CHOWN:   {name: "chown", paths: [][2]int{{workingDirectory, 0}}},
	unix.SYS_LCHOWN:  {name: "chown", paths: [][2]int{{workingDirectory, 0}}},
}
