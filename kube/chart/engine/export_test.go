package engine

// MaxText is the largest text of a template.
const MaxText = maxText
