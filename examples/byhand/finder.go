package main

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	ramp "github.com/token-ramp/ramp-go"
)

// These two methods make the server's orders a rampproof.OrderFinder. A rampproof.Proof needs one to
// find out whether a mint that failed was minted by another transaction.

// OrderByTransaction returns the order that a transaction has ended.
func (s *server) OrderByTransaction(_ context.Context, hash common.Hash) (ramp.Order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, ended := s.transactions[hash.Hex()]; ended {
		return *s.orders[id], nil
	}
	return ramp.Order{}, ramp.ErrOrderUnknown
}

// NewestSuccess returns the order that was the last one to succeed by a transaction. All are of
// one network.
func (s *server) NewestSuccess(context.Context, ramp.Network) (ramp.Order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var newest *ramp.Order
	for _, order := range s.orders {
		succeeded := order.State == ramp.OrderSucceeded && order.TxHash != ""
		if succeeded && (newest == nil || order.FinishedAt.After(newest.FinishedAt)) {
			newest = order
		}
	}
	if newest == nil {
		return ramp.Order{}, ramp.ErrOrderUnknown
	}
	return *newest, nil
}
