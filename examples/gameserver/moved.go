// This file counts what leaves the game, for the limits of caps.go. To make it yours: change nothing.

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ramp "github.com/token-ramp/ramp-go"
)

// hourAndDay number the hours and days since 1970.
func hourAndDay(at time.Time) (hour, day int64) {
	return at.Unix() / 3600, at.Unix() / 86400
}

// countMoved adds a mint to what its player and all players have moved, and rejects it if that is more
// than a limit. It runs last in Apply, in the transaction of the order: what is rejected is not counted,
// and the rows of all players are locked only until the commit that follows.
func (g *game) countMoved(ctx context.Context, tx *sql.Tx, o ramp.Order) error {
	for _, asset := range o.Assets { // sorted, so that two orders cannot deadlock
		limit, capped := g.caps[asset.ID]
		if !capped || o.Direction != ramp.Mint {
			continue
		}
		n, err := asset.Amount.Int64()
		if err != nil {
			return err
		}
		moved, err := g.addMoved(ctx, tx, o, asset.ID, n)
		if err != nil {
			return err
		}
		player, all := moved[0], moved[1]
		if player.hour > limit.playerHour || player.day > limit.playerDay ||
			all.hour > limit.allHour || all.day > limit.allDay {
			return &ramp.Rejection{Code: "LIMIT_REACHED", Err: fmt.Errorf(
				"of %s, the player would move %d in an hour and %d in a day, and all players %d and "+
					"%d: see -cap",
				asset.ID, player.hour, player.day, all.hour, all.day)}
		}
	}
	return nil
}

// moved is how many of an item have become tokens.
type moved struct{ hour, day int64 }

// addMoved adds to what the player and all players have moved of an item, and returns both.
func (g *game) addMoved(
	ctx context.Context, tx *sql.Tx, o ramp.Order, item string, n int64,
) (both [2]moved, err error) {
	hour, day := hourAndDay(o.AcceptedAt)
	// A server whose clock is behind adds to the newest hour. MySQL assigns in this order, and sees what it
	// has assigned.
	const statement = `INSERT INTO moved (item, who, hour, in_hour, before_hour, day, in_day, before_day)
		VALUES (?, ` + ofSession + `, ?, ?, 0, ?, ?, 0), (?, '', ?, ?, 0, ?, ?, 0)
		ON CONFLICT (item, who) DO UPDATE SET
			before_hour = CASE WHEN moved.hour >= excluded.hour THEN moved.before_hour
				WHEN moved.hour = excluded.hour - 1 THEN moved.in_hour ELSE 0 END,
			in_hour = CASE WHEN moved.hour >= excluded.hour THEN moved.in_hour ELSE 0 END + excluded.in_hour,
			hour = CASE WHEN moved.hour >= excluded.hour THEN moved.hour ELSE excluded.hour END,
			before_day = CASE WHEN moved.day >= excluded.day THEN moved.before_day
				WHEN moved.day = excluded.day - 1 THEN moved.in_day ELSE 0 END,
			in_day = CASE WHEN moved.day >= excluded.day THEN moved.in_day ELSE 0 END + excluded.in_day,
			day = CASE WHEN moved.day >= excluded.day THEN moved.day ELSE excluded.day END`
	_, err = tx.ExecContext(ctx, g.bind(statement), item, o.SessionID, hour, n, day, n, item, hour, n, day, n)
	if err != nil {
		return both, fmt.Errorf("count what moved: %w", err)
	}
	for i, who := range []string{ofSession, "?"} {
		argument := any(o.SessionID)
		if i == 1 {
			argument = ""
		}
		query := g.bind(
			"SELECT in_hour + before_hour, in_day + before_day FROM moved WHERE item = ? AND who = " + who)
		row := tx.QueryRowContext(ctx, query, item, argument)
		err = errors.Join(err, row.Scan(&both[i].hour, &both[i].day))
	}
	return both, err
}

// observeCaps registers gauges of how much of each limit has been used: by the player who has used most,
// and by all.
func (g *game) observeCaps(registry prometheus.Registerer) {
	for item, limit := range g.caps {
		for _, c := range []struct {
			of, window string
			most       int64
		}{
			{"player", "hour", limit.playerHour}, {"player", "day", limit.playerDay},
			{"all", "hour", limit.allHour}, {"all", "day", limit.allDay},
		} {
			who := "<> ''"
			if c.of == "all" {
				who = "= ''"
			}
			// What is older than the hour or the day before counts no more.
			query := strings.ReplaceAll(`SELECT COALESCE(MAX(
				CASE WHEN hour = ? THEN in_hour + before_hour ELSE in_hour END), 0)
				FROM moved WHERE item = ? AND hour >= ? AND who `+who, "hour", c.window)
			used := func(ctx context.Context) (used float64, err error) {
				now, today := hourAndDay(time.Now())
				if c.window == "day" {
					now = today
				}
				err = g.db.QueryRowContext(ctx, g.bind(query), now, item, now-1).Scan(&used)
				return used / float64(c.most), err
			}
			const help = "How much of a limit of -cap has been used, the same on every server."
			labels := prometheus.Labels{"item": item, "of": c.of, "window": c.window}
			gauge(registry, "ramp_cap_share", help, labels, used)
		}
	}
}
