package cluster

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// protobuf is the format in which metadata and some kinds are asked for: writing and reading the same as JSON takes several times as long,
// on both sides. A server that does not know it answers in JSON.
const protobuf = "application/vnd.kubernetes.protobuf"

// protobufMagic begins each answer in that format. A [runtime.Unknown] follows.
const protobufMagic = "k8s\x00"

// fromProtobuf unwraps an answer in that format. It reports false for an answer in another one.
func fromProtobuf(answer []byte) (raw []byte, ok bool) {
	message, ok := bytes.CutPrefix(answer, []byte(protobufMagic))
	if !ok {
		return nil, false
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(message); err != nil {
		return nil, false
	}
	return envelope.Raw, true
}

// Numbers of fields of [runtime.Unknown], and of every list.
const (
	rawInEnvelope  = 2
	metadataInList = 1
	itemsInList    = 2
)

// maxItem bounds an object in a list. The API server accepts at most 3 MB.
const maxItem = 16 << 20

var errNotProtobuf = errors.New("it is not valid protobuf")

// readProtobuf reads a list behind [protobufMagic], of each object the fields in of. It keeps one object at a time besides the result.
func readProtobuf(page *unstructured.UnstructuredList, r *bufio.Reader, of message) error {
	for complete := false; ; {
		number, length, err := nextField(r)
		switch {
		case errors.Is(err, io.EOF) && complete:
			return nil
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
		content := &io.LimitedReader{R: r, N: length}
		if number == rawInEnvelope {
			complete, err = true, readItems(page, bufio.NewReader(content), of)
		} else {
			_, err = io.Copy(io.Discard, content)
		}
		if err != nil {
			return err
		}
		if content.N > 0 {
			return io.ErrUnexpectedEOF
		}
	}
}

func readItems(page *unstructured.UnstructuredList, r *bufio.Reader, of message) error {
	d := decoder{words: map[string]string{}}
	var content []byte
	page.Object = map[string]any{}
	for {
		number, length, err := nextField(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if length > maxItem {
			return fmt.Errorf("an object has %d bytes", length)
		}
		if int64(cap(content)) < length {
			content = make([]byte, length, 2*length)
		}
		content = content[:length]
		if _, err = io.ReadFull(r, content); err != nil {
			return err
		}
		switch number {
		case metadataInList:
			page.Object["metadata"], err = d.object(content, listMetadata)
		case itemsInList:
			var one map[string]any
			one, err = d.object(content, of)
			page.Items = append(page.Items, unstructured.Unstructured{Object: one})
		}
		if err != nil {
			return err
		}
	}
}

var listMetadata = message{{2, text, "resourceVersion", nil}, {3, text, "continue", nil}}

// nextField reads the head of a field whose content has a length, as all in an envelope and a list have.
func nextField(r *bufio.Reader) (number uint64, length int64, err error) {
	tag, err := binary.ReadUvarint(r)
	if err != nil {
		return 0, 0, err // the end, if nothing was read
	}
	size, err := binary.ReadUvarint(r)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err == nil && (protowire.Type(tag&7) != protowire.BytesType || int64(size) < 0) { //nolint:gosec // G115: checked here
		err = errNotProtobuf
	}
	return tag >> 3, int64(size), err //nolint:gosec // G115: checked above
}

// decoder turns messages into what the same objects are in JSON.
type decoder struct {
	words map[string]string // each word once; nil keeps none
}

func (d *decoder) object(content []byte, of message) (map[string]any, error) {
	const small = 8 // a larger map takes more, and few objects have all fields
	result := make(map[string]any, min(len(of), small))
	for len(content) > 0 {
		number, kind, n := protowire.ConsumeTag(content)
		if n < 0 {
			return nil, errNotProtobuf
		}
		length := protowire.ConsumeFieldValue(number, kind, content[n:])
		if length < 0 {
			return nil, errNotProtobuf
		}
		value := content[n : n+length]
		content = content[n+length:]
		f, known := of.field(number)
		if !known {
			continue
		}
		var err error
		switch kind {
		case protowire.VarintType:
			integer, _ := protowire.ConsumeVarint(value)
			err = f.setInteger(result, int64(integer)) //nolint:gosec // G115: that is how negative numbers are written
		case protowire.BytesType:
			value, _ = protowire.ConsumeBytes(value)
			err = d.set(result, f, value)
		default:
			err = errNotProtobuf
		}
		if err != nil {
			return nil, err
		}
	}
	return result, nil
}

func (f field) setInteger(result map[string]any, value int64) error {
	switch {
	case f.form == truth:
		result[f.name] = value != 0
	case f.form == count, f.form == number && value != 0:
		result[f.name] = value
	case f.form != number:
		return errNotProtobuf
	}
	return nil
}

// set adds a value that has a length. Those of lists and maps come one by one.
func (d *decoder) set(result map[string]any, f field, value []byte) (err error) {
	switch f.form {
	case text:
		if len(value) > 0 {
			result[f.name] = string(value)
		}
	case word:
		if len(value) > 0 {
			result[f.name] = d.word(value)
		}
	case moment:
		var at time.Time
		if at, err = timeOf(value); !at.IsZero() {
			result[f.name] = at.UTC().Format(time.RFC3339)
		}
	case microMoment:
		var at time.Time
		if at, err = timeOf(value); !at.IsZero() {
			result[f.name] = at.UTC().Format(metav1.RFC3339Micro)
		}
	case object:
		result[f.name], err = d.object(value, f.of)
	case objects:
		one, failure := d.object(value, f.of)
		list, _ := result[f.name].([]any)
		result[f.name], err = append(list, one), failure
	case texts:
		list, _ := result[f.name].([]any)
		result[f.name] = append(list, d.word(value))
	case dictionary, data:
		entries, _ := result[f.name].(map[string]any)
		if entries == nil {
			entries = map[string]any{}
			result[f.name] = entries
		}
		return d.addEntry(entries, value, f.form)
	default:
		return errNotProtobuf
	}
	return err
}

// addEntry adds an entry of a map, which is a message with a key and a value.
func (d *decoder) addEntry(entries map[string]any, content []byte, form form) error {
	var parts [3][]byte // by number
	for len(content) > 0 {
		number, kind, n := protowire.ConsumeTag(content)
		if n < 0 || kind != protowire.BytesType || number >= protowire.Number(len(parts)) {
			return errNotProtobuf
		}
		value, length := protowire.ConsumeBytes(content[n:])
		if length < 0 {
			return errNotProtobuf
		}
		parts[number], content = value, content[n+length:]
	}
	if form == data {
		entries[d.word(parts[1])] = base64.StdEncoding.EncodeToString(parts[2])
	} else {
		entries[d.word(parts[1])] = d.word(parts[2])
	}
	return nil
}

// Bounds of words that are kept, so that they take no more room than they save.
const maxWord, maxWords = 128, 1000

// word returns a string, the same one for equal words.
func (d *decoder) word(value []byte) string {
	if len(value) > maxWord {
		return string(value)
	}
	known, ok := d.words[string(value)]
	if !ok {
		known = string(value)
		if d.words != nil && len(d.words) < maxWords {
			d.words[known] = known
		}
	}
	return known
}

// timeOf reads a Time of Kubernetes, or a MicroTime: seconds and nanoseconds. It returns the zero time if neither is there.
func timeOf(content []byte) (time.Time, error) {
	var parts [3]int64 // by number
	there := false
	for len(content) > 0 {
		number, kind, n := protowire.ConsumeTag(content)
		if n < 0 || kind != protowire.VarintType {
			return time.Time{}, errNotProtobuf
		}
		value, length := protowire.ConsumeVarint(content[n:])
		if length < 0 {
			return time.Time{}, errNotProtobuf
		}
		if int(number) < len(parts) {
			parts[number], there = int64(value), true //nolint:gosec // G115: that is how negative numbers are written
		}
		content = content[n+length:]
	}
	if !there {
		return time.Time{}, nil
	}
	return time.Unix(parts[1], parts[2]), nil
}
