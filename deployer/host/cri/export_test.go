package cri

// Contents reads a message in every way, and returns the contents of field 1.
func Contents(data []byte) (contents [][]byte) {
	m := message(data)
	m.texts(3)
	m.number(8)
	m.entries(2)
	for _, one := range m.messages(1) {
		contents = append(contents, one)
	}
	return contents
}

// Message returns a message whose field 1 has these contents.
func Message(contents [][]byte) (m message) {
	for _, one := range contents {
		m = m.withMessage(1, one)
	}
	return m
}
