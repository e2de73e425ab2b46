package cri

// ReadAll reads a message in every way.
func ReadAll(data []byte) {
	m := message(data)
	m.messages(1)
	m.texts(3)
	m.number(8)
	m.entries(2)
}
