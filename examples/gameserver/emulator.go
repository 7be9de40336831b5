package main

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// emulator is the token ramp in this process, for trying the game without one.
// Take this file out of a server that you deploy.
type emulator struct{ *ramptest.Service }

func startEmulator(key ramp.HMACKey, signer *ramp.Signer, game, project string) (*emulator, error) {
	service, err := ramptest.New(ramptest.Config{Key: key, Validator: signer.Address(), Game: game, ProjectID: project})
	if err != nil {
		return nil, err
	}
	return &emulator{service}, nil
}

// emulate plays a player and the service: it initializes, has the order
// validated and delivers its result, all over HTTP.
func (a *api) emulate(w http.ResponseWriter, r *http.Request) {
	asked := struct {
		trade
		Do         string `json:"do"`
		Outcome    string `json:"outcome"`
		Deliveries int    `json:"deliveries"`
	}{Do: "mint", Outcome: "succeeded", Deliveries: 1}
	if !a.read(w, r, &asked) || !a.authenticated(w, r, asked.trade) {
		return
	}
	place := map[string]func(context.Context, uuid.UUID, ramp.Session, ramp.Amount) (*ramptest.Order, error){
		"mint": a.emulator.Mint, "burn": a.emulator.Burn}[asked.Do]
	outcome, known := map[string]ramptest.Outcome{"succeeded": ramptest.Succeeded, "failed": ramptest.Failed}[asked.Outcome]
	if place == nil || !known || asked.Deliveries < 0 || asked.Deliveries > 20 {
		a.fail(w, r, http.StatusBadRequest, "do must be mint or burn, outcome succeeded or failed, deliveries 0 to 20", nil)
		return
	}
	asked.Token = cmp.Or(asked.Token, "0x00000000000000000000000000000000000070c3")
	asked.Network = cmp.Or(asked.Network, ramp.Testnet)
	ctx, session := r.Context(), asked.session()

	answer := struct {
		UUID      uuid.UUID      `json:"uuid"`
		Before    []ramp.Asset   `json:"before"`
		Validated []ramp.Asset   `json:"validated"`
		Delivered [][]ramp.Asset `json:"delivered"`
	}{}
	err := func() (err error) {
		started, err := a.client.Initialize(ctx, a.recipe(asked.trade))
		if err != nil {
			return err
		}
		answer.UUID = started.UUID
		if answer.Before, err = a.owned(ctx, session); err != nil {
			return err
		}
		order, err := place(ctx, started.UUID, session, ramp.NewAmount(1))
		if err != nil {
			return err
		}
		if answer.Validated, err = a.owned(ctx, session); err != nil {
			return err
		}
		for range asked.Deliveries {
			if err := a.emulator.Deliver(ctx, order, outcome); err != nil {
				return err
			}
			owned, err := a.owned(ctx, session)
			if err != nil {
				return err
			}
			answer.Delivered = append(answer.Delivered, owned)
		}
		return nil
	}()
	var declined *ramptest.Declined
	switch {
	case errors.As(err, &declined):
		a.fail(w, r, http.StatusConflict, "the game declined: "+string(declined.Code), nil)
	case err != nil:
		a.fail(w, r, http.StatusBadGateway, "the emulation failed", err)
	default:
		reply(w, http.StatusOK, answer)
	}
}

// owned is what the player owns, as the service reads it.
func (a *api) owned(ctx context.Context, s ramp.Session) ([]ramp.Asset, error) {
	player, err := a.emulator.Assets(ctx, s)
	if err != nil {
		return nil, err
	}
	return player.Assets, nil
}
