package preload

// Names for tests.
var (
	ParseMessage = parseMessage
	JobName      = jobName
)
