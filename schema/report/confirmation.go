package report

// Confirmation is the question before an action that cannot be undone. The zero value asks nothing.
type Confirmation struct {
	Question string
	Name     string // has to be typed, so that the user reads the question; "" where a yes is enough
	Lists    []ConfirmationList
}

// ConfirmationList names objects that the action would delete, including unexpected ones.
type ConfirmationList struct {
	Title string
	Items []string
}
