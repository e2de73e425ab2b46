package cri

import "google.golang.org/protobuf/encoding/protowire"

// message is a message in the wire format of protocol buffers. Fields are read by their numbers; malformed ones read as missing.
type message []byte

func (m message) withText(number protowire.Number, text string) message {
	return m.withMessage(number, message(text))
}

func (m message) withMessage(number protowire.Number, content message) message {
	return protowire.AppendBytes(protowire.AppendTag(m, number, protowire.BytesType), content)
}

// withEntry adds an entry to a map of texts.
func (m message) withEntry(number protowire.Number, key, value string) message {
	return m.withMessage(number, message{}.withText(1, key).withText(2, value))
}

// fields calls yield with each field: its content, or the number that it is.
func (m message) fields(yield func(number protowire.Number, content []byte, value uint64)) {
	for rest := []byte(m); len(rest) > 0; {
		number, kind, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return
		}
		rest = rest[n:]
		switch kind {
		case protowire.BytesType:
			content, length := protowire.ConsumeBytes(rest)
			if length < 0 {
				return
			}
			yield(number, content, 0)
			rest = rest[length:]
		case protowire.VarintType:
			value, length := protowire.ConsumeVarint(rest)
			if length < 0 {
				return
			}
			yield(number, nil, value)
			rest = rest[length:]
		default:
			if n = protowire.ConsumeFieldValue(number, kind, rest); n < 0 {
				return
			}
			rest = rest[n:]
		}
	}
}

// messages returns each content of a field.
func (m message) messages(wanted protowire.Number) (list []message) {
	m.fields(func(number protowire.Number, content []byte, _ uint64) {
		if number == wanted && content != nil {
			list = append(list, content)
		}
	})
	return list
}

// message returns the last content of a field, nil where there is none.
func (m message) message(number protowire.Number) message {
	all := m.messages(number)
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

func (m message) text(number protowire.Number) string { return string(m.message(number)) }

func (m message) texts(number protowire.Number) (list []string) {
	for _, one := range m.messages(number) {
		list = append(list, string(one))
	}
	return list
}

func (m message) number(wanted protowire.Number) (last uint64) {
	m.fields(func(number protowire.Number, _ []byte, value uint64) {
		if number == wanted {
			last = value
		}
	})
	return last
}

// entries returns a map of texts.
func (m message) entries(number protowire.Number) map[string]string {
	all := map[string]string{}
	for _, entry := range m.messages(number) {
		all[entry.text(1)] = entry.text(2)
	}
	return all
}
