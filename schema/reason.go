package schema

// Reason is a sentence about the health of a deployment, with what a program needs to know about it. A document has the sentence
// alone: the other fields are zero when it was read from one.
type Reason struct {
	Component string       // of the Solution; "" for the Solution itself
	Object    ObjectRef    // that it is about, whose name Text begins with; zero for none
	Changed   bool         // Object is no longer as it was deployed
	Log       ContainerLog // that has more about it; zero for none
	Text      string
}

// ContainerLog is the log of a container. Previous is true when the container was started again since, or is about to be.
type ContainerLog struct {
	Pod, Container string
	Previous       bool
}

// String returns the sentence, which begins with the component.
func (r Reason) String() string {
	if r.Component != "" {
		return "component " + r.Component + ": " + r.Text
	}
	return r.Text
}

// MarshalText implements [encoding.TextMarshaler].
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (r *Reason) UnmarshalText(text []byte) error {
	*r = Reason{Text: string(text)}
	return nil
}

// Sentences returns the sentences of reasons.
func Sentences(reasons []Reason) []string {
	sentences := make([]string, len(reasons))
	for i, r := range reasons {
		sentences[i] = r.String()
	}
	return sentences
}
