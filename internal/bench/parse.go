package main

import (
	"encoding/json"

	ramp "github.com/token-ramp/ramp-go"
)

const plainRival = "json.Unmarshal, plain struct"

func parseComparisons() []comparison {
	parse := func(subject string, body []byte, ours func([]byte) error, theirs func() any) comparison {
		return comparison{subject: subject, rival: plainRival, clock: wallTime, setup: func() sides {
			return sides{
				ours:   func() error { return ours(body) },
				theirs: func() error { return json.Unmarshal(body, theirs()) },
			}
		}}
	}
	parseResult := func(body []byte) error { _, err := ramp.ParseResult(body); return err }
	parseValidate := func(body []byte) error { _, err := ramp.ParseValidate(body); return err }
	return []comparison{
		parse("ParseResult, 1 log", resultBody(1), parseResult, func() any { return new(plainResult) }),
		parse("ParseResult, 20 logs", resultBody(20), parseResult, func() any { return new(plainResult) }),
		parse("ParseValidate", []byte(validateBody), parseValidate, func() any { return new(plainValidate) }),
	}
}
