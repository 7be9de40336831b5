package imitation

// failure is an error of DynamoDB.
type failure struct {
	code, message string
	reasons       []reason // of TransactionCanceledException
}

func (f failure) Error() string { return f.code + ": " + f.message }

func invalid(message string) error { return failure{code: "ValidationException", message: message} }

type reason struct{ Code, Message string }
