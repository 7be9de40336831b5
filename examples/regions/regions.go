// Package regions is a game whose players are in several PostgreSQL databases, such as one for each region.
// An order is in the database of its player, and rampsql.Shards finds it, also after its player has moved.
// The session ID is the ID of the player. Copy it.
//
// Each database has residents, the players who are there. What an order brings to a player who has moved on
// becomes a parcel, and [Game.Deliver] takes it to where the player is.
package regions

import (
	"context"
	"database/sql"
	"errors"

	"github.com/google/uuid"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
)

// DirectorySchema creates the tables that say where each player is. They are in one database, with those of
// rampsql, of which it needs ramp_claims.
const DirectorySchema = `
CREATE TABLE players (
    player text PRIMARY KEY,
    shard  int NOT NULL,  -- where the player is
    target int            -- where the player is being moved to; NULL if the player is not
);
CREATE TABLE former_shards (
    player text NOT NULL,
    shard  int  NOT NULL,
    PRIMARY KEY (player, shard)
);
`

// ShardSchema creates the game's tables of each database, besides those of rampsql.
const ShardSchema = `
CREATE TABLE residents (player text PRIMARY KEY);
CREATE TABLE balances (
    player text   NOT NULL,
    asset  text   NOT NULL,
    amount bigint NOT NULL CHECK (amount >= 0),
    PRIMARY KEY (player, asset)
);
CREATE TABLE parcels (
    id     text   PRIMARY KEY,
    player text   NOT NULL,
    asset  text   NOT NULL,
    amount bigint NOT NULL,
    target int             -- the database to which it is delivered, once that has begun
);
CREATE TABLE delivered (id text PRIMARY KEY); -- the parcels that have arrived here
`

// Game is where the players are.
type Game struct {
	Directory *sql.DB
	Shards    []*sql.DB // in the order of rampsql.ShardsConfig.Stores
}

// Claims returns the claims of all databases, for Claims of each rampsql.Config: one transaction ends one
// order of all of them.
func (g *Game) Claims(network ramp.Network) (*rampsql.Claims, error) {
	return rampsql.NewClaims(rampsql.ClaimsConfig{
		DB: g.Directory, Dialect: rampsql.PostgreSQL, Network: network,
	})
}

// Place says where a player is. It is Place of rampsql.ShardsConfig.
func (g *Game) Place(ctx context.Context, player string) (place rampsql.Place, err error) {
	rows, err := g.Directory.QueryContext(ctx, "SELECT p.shard, p.target IS NOT NULL, f.shard"+
		" FROM players p LEFT JOIN former_shards f ON f.player = p.player WHERE p.player = $1", player)
	if err != nil {
		return rampsql.Place{}, err
	}
	defer rows.Close()
	known := false
	for rows.Next() {
		var former sql.NullInt64
		if err := rows.Scan(&place.Shard, &place.Moving, &former); err != nil {
			return rampsql.Place{}, err
		}
		if known = true; former.Valid {
			place.Former = append(place.Former, int(former.Int64))
		}
	}
	if err := rows.Err(); err != nil {
		return rampsql.Place{}, err
	}
	if !known {
		return rampsql.Place{}, ramp.Reject("INVALID_USER")
	}
	return place, nil
}

// Apply is Apply of rampsql.Config, in each database. It locks the resident, so that an order and a move come
// one after the other.
func Apply(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
	player := step.Order.SessionID
	here, err := isResident(ctx, tx, player)
	if err != nil {
		return err
	}
	if !here && step.Order.State == ramp.OrderAccepted {
		return ramp.Reject("PLAYER_MOVING")
	}
	for _, asset := range step.Effect.Assets {
		amount, err := step.Effect.Delta(asset).Int64()
		if err != nil {
			return err
		}
		if step.Effect.Kind == ramp.Take {
			err = take(ctx, tx, player, asset.ID, amount)
		} else {
			err = give(ctx, tx, here, player, asset.ID, amount)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isResident reports whether a player is in this database, and locks that.
func isResident(ctx context.Context, tx *sql.Tx, player string) (bool, error) {
	var one int
	err := tx.QueryRowContext(ctx, "SELECT 1 FROM residents WHERE player = $1 FOR UPDATE", player).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

func take(ctx context.Context, tx *sql.Tx, player, asset string, amount int64) error {
	done, err := tx.ExecContext(ctx, "UPDATE balances SET amount = amount + $1"+
		" WHERE player = $2 AND asset = $3 AND amount + $1 >= 0", amount, player, asset)
	if err != nil {
		return err
	}
	n, err := done.RowsAffected()
	if err == nil && n == 0 {
		err = ramp.Reject("INVALID_BALANCE")
	}
	return err
}

// give gives a player an amount, or makes a parcel of it for a player who is not here.
func give(ctx context.Context, tx *sql.Tx, here bool, player, asset string, amount int64) error {
	statement, id := "INSERT INTO balances (player, asset, amount) VALUES ($1, $2, $3)"+
		" ON CONFLICT (player, asset) DO UPDATE SET amount = balances.amount + excluded.amount", []any(nil)
	if !here {
		statement = "INSERT INTO parcels (player, asset, amount, id) VALUES ($1, $2, $3, $4)"
		id = []any{uuid.NewString()}
	}
	_, err := tx.ExecContext(ctx, statement, append([]any{player, asset, amount}, id...)...)
	return err
}
