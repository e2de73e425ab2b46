package registry

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"
)

// batchSize is the number of bytes that are encrypted into one batch.
const batchSize = 128 << 10

// Free buffers: of content, and of the records that it becomes, which have a header and a checksum for 16 KiB each.
var (
	contents = sync.Pool{New: func() any { return new([batchSize]byte) }}
	batches  = sync.Pool{New: func() any { return bytes.NewBuffer(make([]byte, 0, batchSize+batchSize/256)) }}
)

// batch is the connection below TLS. The records of a batch go to the socket with one system call; else each takes one, for 16 KiB.
type batch struct {
	net.Conn
	mu      sync.Mutex
	records *bytes.Buffer // nil while none are collected
}

// Batched returns a listener for the connections below TLS of a server that [NewServer] has made.
func Batched(l net.Listener) net.Listener { return batching{l} }

type batching struct{ net.Listener }

func (l batching) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &batch{Conn: c}, nil
}

// Write sends a record, or adds it to the batch.
func (b *batch) Write(record []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.records == nil {
		return b.Conn.Write(record)
	}
	return b.records.Write(record)
}

// send sends what was collected. After an error the connection is closed, because TLS does not know which records are missing.
func (b *batch) send() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, err := b.Conn.Write(b.records.Bytes())
	b.records.Reset()
	batches.Put(b.records)
	b.records = nil
	if err != nil {
		_ = b.Close() // the error of writing is the one to report
	}
	return err
}

// copy writes size bytes of r to a response on this connection. It returns fewer when r ends before.
func (b *batch) copy(w io.Writer, r io.Reader, size int64) (sent int64, err error) {
	for sent < size {
		n, err := b.collect(w, io.LimitReader(r, min(batchSize, size-sent)))
		sent += n
		if err = cmp.Or(b.send(), err); err != nil || n == 0 {
			return sent, err
		}
	}
	return sent, nil
}

// collect writes r to a response, and its records to a batch. The buffer of the content is free again while the batch is sent.
func (b *batch) collect(w io.Writer, r io.Reader) (int64, error) {
	content, _ := contents.Get().(*[batchSize]byte)
	defer contents.Put(content)
	b.mu.Lock()
	b.records, _ = batches.Get().(*bytes.Buffer)
	b.mu.Unlock()
	return io.CopyBuffer(struct{ io.Writer }{w}, r, content[:])
}

type batchKey struct{}

// withBatch adds the connection to the context of its requests.
func withBatch(ctx context.Context, c net.Conn) context.Context {
	if encrypted, ok := c.(*tls.Conn); ok {
		if b, ok := encrypted.NetConn().(*batch); ok {
			return context.WithValue(ctx, batchKey{}, b)
		}
	}
	return ctx
}
