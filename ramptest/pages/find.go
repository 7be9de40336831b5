package pages

import (
	"context"
	"errors"
	"net/http"

	"github.com/google/uuid"
	"github.com/token-ramp/ramp-go/ramptest/control"
)

// orderOf returns the order with a UUID, or nil if there is none.
func (s *site) orderOf(text string) *control.OrderReport {
	id, err := uuid.Parse(text)
	if err != nil {
		return nil
	}
	o, err := s.service.Order(context.Background(), id.String(), control.OrderQuery{})
	if err != nil {
		return nil
	}
	return &o
}

func (s *visit) noOrder() {
	s.failure(http.StatusNotFound, "There is no such order. The service may have been restarted.",
		link{"/", "All orders"})
}

// codeOf returns the code of an error of the service, or "" if there is none.
func codeOf(err error) (control.ErrorCode, error) {
	var known *control.Error
	if errors.As(err, &known) {
		return known.Code, err
	}
	return "", nil
}

// toOrder sends the reader to the page of an order.
func (s *visit) toOrder(id uuid.UUID) { s.redirect("/orders/" + id.String()) }
