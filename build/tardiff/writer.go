package tardiff

import (
	"encoding/binary"
	"io"

	"github.com/klauspost/compress/zstd"
)

// writer writes operations. Data and copies that follow each other are one operation.
type writer struct {
	z      *zstd.Encoder
	data   []byte // that is not written yet
	copied int64  // bytes of the open file that are not written yet
	name   string // of the open file
	at     int64  // in the open file
}

func newWriter(w io.Writer) (*writer, error) {
	if _, err := io.WriteString(w, header); err != nil {
		return nil, err
	}
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window), zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
	return &writer{z: z, data: make([]byte, 0, bufferSize)}, err
}

// emit writes bytes of the new tar file.
func (w *writer) emit(data []byte) error {
	for len(data) > 0 {
		if err := w.endCopy(); err != nil {
			return err
		}
		n := min(len(data), cap(w.data)-len(w.data))
		w.data, data = append(w.data, data[:n]...), data[n:]
		if len(w.data) == cap(w.data) {
			if err := w.endData(); err != nil {
				return err
			}
		}
	}
	return nil
}

// copy writes that size bytes at an offset of a file follow.
func (w *writer) copy(name string, at, size int64) error {
	if err := w.seek(name, at); err != nil {
		return err
	}
	w.copied += size
	w.at += size
	return nil
}

// add writes that the sums of these bytes and those at an offset of a file follow.
func (w *writer) add(name string, at int64, differences []byte) error {
	if err := w.seek(name, at); err != nil {
		return err
	}
	if err := w.endCopy(); err != nil {
		return err
	}
	w.at += int64(len(differences))
	return w.write(opAdd, int64(len(differences)), differences)
}

func (w *writer) seek(name string, at int64) error {
	if err := w.endData(); err != nil {
		return err
	}
	if w.name == name && w.at == at {
		return nil
	}
	if err := w.endCopy(); err != nil {
		return err
	}
	if w.name != name {
		w.name, w.at = name, 0
		if err := w.write(opOpen, int64(len(name)), []byte(name)); err != nil {
			return err
		}
	}
	if w.at == at {
		return nil
	}
	w.at = at
	return w.write(opSeek, at, nil)
}

func (w *writer) endData() error {
	if len(w.data) == 0 {
		return nil
	}
	err := w.write(opData, int64(len(w.data)), w.data)
	w.data = w.data[:0]
	return err
}

func (w *writer) endCopy() error {
	if w.copied == 0 {
		return nil
	}
	size := w.copied
	w.copied = 0
	return w.write(opCopy, size, nil)
}

func (w *writer) write(op operation, size int64, data []byte) error {
	var start [1 + binary.MaxVarintLen64]byte
	start[0] = byte(op)
	n := binary.PutUvarint(start[1:], uint64(size)) //nolint:gosec // not negative
	if _, err := w.z.Write(start[:1+n]); err != nil {
		return err
	}
	_, err := w.z.Write(data)
	return err
}

func (w *writer) close() error {
	if err := w.endData(); err != nil {
		return err
	}
	if err := w.endCopy(); err != nil {
		return err
	}
	return w.z.Close()
}
