package interleaving

import "strings"

// Statement is a statement of a server, from the stop before it until it is answered.
type Statement struct {
	Server   int
	Text     string
	InTx     bool  // sent in a transaction
	Outside  bool  // sent on another connection, while a transaction of the server was open
	Affected int64 // how many rows it changed; -1 if it is unknown
	Err      error // its answer
	Fault    Fault
	Waited   bool // for a lock

	races bool  // whether the database may abort the transaction, because of its isolation level
	conn  int64 // the database's name of the connection; 0 for a file
	rows  Rows  // that it touches
	all   Rows  // those, and what its transaction holds
	fate  chan Fault
}

func (st *Statement) begins() bool { return st.Text == begin }

// ends reports whether the statement ends a transaction.
func (st *Statement) ends() bool { return st.commits() || st.Text == rollback }

func (st *Statement) commits() bool {
	return st.Text == commit || strings.HasPrefix(st.Text, commits)
}

// OfGame reports whether the game sent it in the transaction of a step.
func (st *Statement) OfGame() bool {
	switch st.verb() {
	case begin, commit, rollback, "SAVEPOINT", "RELEASE", "SET":
		return false
	}
	return st.InTx && !strings.Contains(st.Text, "ramp_orders")
}

func (st *Statement) verb() string {
	verb, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(st.Text)), " ")
	return verb
}

// faults returns what can go wrong with it.
func (st *Statement) faults(d *Dialect) []Fault {
	switch {
	case st.begins():
		return []Fault{Refused, Unsent, Canceled}
	case st.Text == rollback: // which nobody can refuse
		return []Fault{Unsent, Lost}
	case st.commits():
		return []Fault{Refused, Unsent, Lost, Canceled, KilledBehind}
	case !st.InTx: // it commits by itself
		return []Fault{Refused, Unsent, Lost, Canceled, KilledBehind}
	case d.strict:
		return []Fault{Refused, Unsent, Lost, Canceled}
	}
	return []Fault{Refused, RolledBack, Unsent, Lost, Canceled}
}

// aborted reports whether the database ended the transaction because of a deadlock.
func (st *Statement) aborted() bool {
	if st.Err == nil || st.Fault != None || st.races {
		return false
	}
	text := st.Err.Error()
	return strings.Contains(text, "40P01") || strings.Contains(text, "Error 1213")
}
