// To make it yours: change nothing, or where your game keeps whose wallet it is.

package main

import (
	"context"
	"errors"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	ramp "github.com/token-ramp/ramp-go"
)

// bindWallet lets a wallet belong to the player who names it first, unless the shop is
// closed, which costs no round trip here. A player may have
// several. Whoever has the HMAC key could otherwise name the wallet of another player, and
// be paid for what that player burns. To free a wallet, first end the orders of its player
// that wait for it (gameserver orders), then delete its row. In a game with several
// characters for each account, bind it to the account.
func (g *game) bindWallet(ctx context.Context, s ramp.Session, wallet common.Address) error {
	key := hexutil.Encode(wallet[:]) // in lower case, without the checksum of wallet.Hex
	var player, owner, closed string
	read := func() error {
		return g.db.QueryRowContext(ctx,
			g.bind(`SELECT s.player, COALESCE(w.player, ''), COALESCE(c.closed, '') FROM sessions s
			LEFT JOIN wallets w ON w.wallet = ? LEFT JOIN shop c ON c.closed <> '' WHERE s.id = ?`),
			key, s.ID).Scan(&player, &owner, &closed)
	}
	err := read()
	if err == nil && closed != "" {
		err = g.checkOpen(ctx)
	}
	if err == nil && owner == "" {
		err = errors.Join(g.insertNew(ctx, g.db, "wallets", "wallet, player", key, player), read())
	}
	if err == nil && owner != player {
		err = ramp.Reject("INVALID_USER")
	}
	return err
}

// ownsWallet reports whether a wallet belongs to the player of a session. It binds none.
func (g *game) ownsWallet(ctx context.Context, session string, wallet common.Address) (bool, error) {
	const ofSession = "SELECT w.wallet FROM wallets w JOIN sessions s ON s.player = w.player WHERE s.id = ?"
	wallets, err := g.column(ctx, g.db, ofSession, session)
	return slices.Contains(wallets, hexutil.Encode(wallet[:])), err
}
