package schema

// Resumption holds operations that had not ended, in the order in which they were finished. `solutionctl deploy resume`
// prints it.
type Resumption struct {
	// Planned resumptions were not carried out.
	Planned    bool               `json:"planned"`
	Operations []ResumedOperation `json:"operations"`
}

// ResumedOperation is an operation on a Solution in a namespace that had not ended.
type ResumedOperation struct {
	Environment string `json:"environment,omitempty"`
	// Namespace is empty for what belongs to the whole cluster.
	Namespace string `json:"namespace,omitempty"`
	Solution  string `json:"solution"`
	PendingOperation
	// Finished is true when it has ended now.
	Finished bool `json:"finished"`
	// Error is the reason why it was not finished.
	Error string `json:"error,omitempty"`
}
