package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/solutionctl/solutionctl/schema"
)

// AccessLog writes one line of JSON for every request that is over. A nil log writes nothing.
type AccessLog struct {
	name string // of the file; empty when there is none to be opened again

	mu   sync.Mutex
	out  io.Writer
	file *os.File
}

// NewAccessLog returns a log that writes to w.
func NewAccessLog(w io.Writer) *AccessLog { return &AccessLog{out: w} }

// OpenAccessLog returns a log that appends to a file, which it makes if need be.
func OpenAccessLog(name string) (*AccessLog, error) {
	l := &AccessLog{name: name}
	return l, l.reopen()
}

// Close closes the file.
func (l *AccessLog) Close() error {
	if l == nil || l.file == nil {
		return nil
	}
	return l.file.Close()
}

// reopen opens the file by its name again, after it was rotated.
func (l *AccessLog) reopen() error {
	if l == nil || l.name == "" {
		return nil
	}
	l.mu.Lock() // requests after the new file is visible are written into it
	defer l.mu.Unlock()
	f, err := os.OpenFile(l.name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		return err
	}
	old := l.file
	l.out, l.file = f, f
	if old != nil {
		return old.Close()
	}
	return nil
}

func (l *AccessLog) write(entry schema.RegistryAccess) {
	line, err := json.Marshal(entry)
	if err != nil {
		panic(fmt.Sprintf("serve: a line of the access log does not encode as JSON: %v", err))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.out.Write(append(line, '\n')) // a full disk must not keep nodes from pulling
}
