package schema

// State describes a word that statuses show for the health of a deployment or of an application.
type State struct {
	Word    string `json:"word"` // a [DeploymentHealth] or an [AppHealth]
	Meaning string `json:"meaning"`
	// Next is the next step of a user; "" for none.
	Next string `json:"next,omitempty"`
}

// States are the states of deployments and applications, from good to bad. The console and the reference show this table.
func States() []State {
	return []State{
		{string(HealthReady), "Every object exists and works.", ""},
		{string(HealthUnknown), "You do not have permission to see enough of it.", "Ask an administrator for the role that the page shows."},
		{string(HealthProgressing), "An object is not ready yet, and can still become so.", "Wait, unless the reason beside it is a failure."},
		{string(AppDeleting), "An application is being deleted.", "Wait."},
		{string(HealthForeign), "Another tool deployed it, such as Helm or Salt.", "Adopt it with the next plan, or leave it to the other tool."},
		{string(HealthDrifted), "Objects differ from the deployed ones, or another version is requested.", "Repair it, or deploy the requested version."},
		{string(HealthPending), "An operation is running, or was interrupted.", "Wait, or resume the operation."},
		{string(HealthMissing), "It is requested, and not deployed.", "Add it to the environment."},
		{string(HealthFailed), "An object does not work, and waiting does not help.", "Read the reason beside it, then its logs."},
	}
}
