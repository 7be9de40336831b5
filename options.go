package ramp

import "errors"

// ProjectOption is an option of a [Handler] and of a [SQLGame].
type ProjectOption struct{ id string }

func (o ProjectOption) applySQLGame(g *SQLGame) error {
	g.project = o.id
	return o.check()
}

func (o ProjectOption) check() error {
	if o.id == "" {
		return errors.New("ramp: WithProject: the project is empty")
	}
	return nil
}

// WithProject refuses validate calls for any other project_id than the one from
// the console. Without it, a game that serves several projects tells them apart
// in [Game.Validate].
//
// A result names no project (interface 6). Where projects with HMAC keys of
// their own share a database, give their [SQLGame] the option too: a result for
// an order of another project is then a conflict, whoever signed it.
func WithProject(id string) ProjectOption { return ProjectOption{id: id} }
