package report

// Confirmation is what to ask before something that cannot be taken back. The zero value asks nothing.
type Confirmation struct {
	Question string
	Name     string // has to be typed, so that nobody answers without reading; "" where a yes will do
	Lists    []ConfirmationList
}

// ConfirmationList names what would go and what nobody may expect to.
type ConfirmationList struct {
	Title string
	Items []string
}
