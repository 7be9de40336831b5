package main

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	ramp "github.com/token-ramp/ramp-go"
)

// mintOf asks for a mint of gold at a time.
func mintOf(gold int64) *ramp.ValidateRequest {
	return &ramp.ValidateRequest{UUID: uuid.New(), UserAddress: token, ProjectID: "project", Intent: ramp.Intent{
		Method: ramp.MethodMint, Type: ramp.Assemble,
		From: []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: itemGold, Amount: ramp.NewAmount(gold)}},
		To:   []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: token, Amount: ramp.NewAmount(1)}}}}
}

// reached reports whether a mint was rejected by a limit.
func reached(t *testing.T, err error) bool {
	t.Helper()
	var rejection *ramp.Rejection
	if err != nil && (!errors.As(err, &rejection) || rejection.Code != "LIMIT_REACHED") {
		t.Fatal(err)
	}
	return err != nil
}

// In no 60 minutes, and in no 24 hours, does more leave the game than the limits say, whoever moves it and
// when. What is rejected is not counted.
func TestNoMoreLeavesTheGameThanTheCaps(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		shop := openShop(t, address, 1_000_000_000)
		shop.game.caps = caps{itemGold: {playerHour: 100, playerDay: 300, allHour: 150, allDay: 500}}
		sessions := []ramp.Session{loggedIn(t, shop.game, "alice"), loggedIn(t, shop.game, "bob")}
		type move struct {
			at     time.Time
			player int
			gold   int64
		}
		var done []move
		sum := func(until time.Time, window time.Duration, player int) (gold int64) {
			for _, m := range done {
				if m.at.After(until.Add(-window)) && (player < 0 || m.player == player) {
					gold += m.gold
				}
			}
			return gold
		}
		random := rand.New(rand.NewPCG(1, 2))
		now, rejected := time.Now().Add(-72*time.Hour).Truncate(time.Hour), 0
		for range 300 {
			now = now.Add(time.Duration(random.IntN(20)) * time.Minute)
			m := move{now, random.IntN(2), 1 + random.Int64N(40)}
			request := mintOf(m.gold)
			_, err := shop.store.Update(t.Context(), request.UUID, ramp.Accept(sessions[m.player], request, now))
			if reached(t, err) {
				rejected++
				// Not without reason: the hour of the clock and the one before are at most 120 minutes.
				if sum(now, 2*time.Hour, m.player)+m.gold <= 100 && sum(now, 48*time.Hour, m.player)+m.gold <= 300 &&
					sum(now, 2*time.Hour, -1)+m.gold <= 150 && sum(now, 48*time.Hour, -1)+m.gold <= 500 {
					t.Fatalf("%+v was rejected after %+v", m, done)
				}
				continue
			}
			done = append(done, m)
			if sum(now, time.Hour, m.player) > 100 || sum(now, 24*time.Hour, m.player) > 300 ||
				sum(now, time.Hour, -1) > 150 || sum(now, 24*time.Hour, -1) > 500 {
				t.Fatalf("too much moved: %+v", done)
			}
		}
		if rejected < 20 || len(done) < 20 {
			t.Errorf("%d were rejected, and %d not", rejected, len(done))
		}
	})
}

// Two servers accept mints of several players at the same time, across the end of an hour. The limit is
// reached, and never exceeded by one.
func TestTwoServersKeepOneCap(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		shops := []*testShop{openShop(t, address, 1_000_000_000), openShop(t, address, 1_000_000_000)}
		for _, shop := range shops {
			shop.game.caps = caps{itemGold: {playerHour: 100, playerDay: 100, allHour: 77, allDay: 1000}}
		}
		var sessions []ramp.Session
		for n := range 6 {
			sessions = append(sessions, must(shops[0].game.login(t.Context(), string(rune('a'+n))))(t))
		}
		hour := time.Now().Truncate(time.Hour)
		var gold atomic.Int64
		var all sync.WaitGroup
		for n, session := range sessions {
			shop := shops[n%2]
			all.Go(func() {
				for range 20 {
					request := mintOf(1)
					at := hour.Add(time.Duration(n%2) * -time.Second) // one server has the hour before
					_, err := shop.store.Update(t.Context(), request.UUID, ramp.Accept(session, request, at))
					if !reached(t, err) {
						gold.Add(1)
					}
				}
			})
		}
		all.Wait()
		equal(t, "gold that left the game", gold.Load(), 77)

		registry := prometheus.NewRegistry()
		shops[0].game.observeCaps(registry)
		series := scrape(t, served(t, registry))
		equal(t, "the share of all", series[`ramp_cap_share{item="item_gold",of="all",window="hour"}`], "1")
		equal(t, "the share of all in a day", series[`ramp_cap_share{item="item_gold",of="all",window="day"}`], "0.077")
	})
}

func TestTheFlagOfCaps(t *testing.T) {
	c := caps{}
	check(t, c.set("item_gold=1/2/3/4"))
	equal(t, "the limits", c[itemGold], limits{1, 2, 3, 4})
	for _, text := range []string{"", "item_gold", "item_gold=1/2/3", "item_gold=1/2/3/4/5", "item_gold=1/2/3/x",
		"item_gold=1/2/3/0", "item_gold=1/2/3/-4", "item_silver=1/2/3/4"} {
		if c.set(text) == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}
