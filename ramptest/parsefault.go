package ramptest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/token-ramp/ramp-go/ramptest/internal/fault"
)

// form returns the form of faults like example, which parse makes.
func form(example Fault, argument, says string, parse func(string) (Fault, error)) fault.Form {
	name, _, _ := strings.Cut(example.fault.Name, "=")
	return fault.Form{Name: name, Argument: argument, Says: says, Read: func(argument string) (fault.Fault,
		error) {
		f, err := parse(argument)
		return f.fault, err
	}}
}

var faultForms = fault.Forms{
	plain(TransactionFails, "receipt.status is 0x0"),
	plain(StaysPending, "the transaction is never mined"),
	plain(MinedWithNext, "one transaction is for this order and the next one"),
	form(TransactionType(0), "NUMBER", "type 0x7 is sponsored; other types are unknown", transactionType),
	plain(Reorganized, "the block is replaced after the first result"),
	plain(ReorganizedUnnoticed, "the same, and the result is sent again unchanged"),
	plain(ResultTwice, "the result is sent again immediately"),
	counted(ResultAtOnce, "the result is sent COUNT times at the same time"),
	form(ResultLate(0), "DURATION", "the result is delayed by DURATION", late),
	plain(ResultBeforeAnswer, "the result comes while a repeat of the validate call is not answered"),
	plain(ResultNever, "the result is not sent"),
	plain(BurnsLess, "the transaction burns one of the token's smallest units less than the order is about"),
	plain(MintedByStranger, "somebody with the validator key mints the same"),
	plain(ResultAfterNext, "the result follows that of the next order"),
	plain(WithoutFee, "the result has no fee_rate and no actual"),
	plain(ResultWithoutLogs, "the receipt in the result has no logs, and the node has them"),
	plain(ExpiredUUID, "the UUID has expired"),
	plain(ValidateTwice, "the validate call is repeated"),
	counted(ValidateAtOnce, "the validate call is made COUNT times at the same time"),
	plain(ValidateOtherDigest, "a second validate call with another digest"),
	plain(ValidateOtherAmount, "a second validate call with other amounts"),
	plain(ValidateOtherToken, "an order for another token comes first"),
	plain(ValidateOtherRate, "an order at another rate comes first"),
	plain(ValidateExtraItem, "an order with an item more comes first"),
	calling(TamperedBody, "a call with a changed body comes first"),
	calling(WrongHMAC, "a call with a wrong signature comes first"),
	calling(MissingHMAC, "a call without a signature comes first"),
	calling(LostAnswer, "the answer is lost"),
	plain(StoreFails, "the store of a handler in memory fails at the first result"),
	form(SlowAnswer(OnResult, 0), "CALL:DURATION", "the answer takes DURATION", slow),
	calling(UnknownFields, "the call has fields that the interface does not have"),
}

// FaultForms returns the form of each fault that [ParseFault] reads, with a
// description: for example "result-late=DURATION" and "the result is delayed by
// DURATION". CALL is validate or result. DURATION is a [time.Duration] such as 10m.
// COUNT is a number from 1 to 100.
func FaultForms() (forms [][2]string) { return faultForms.List() }

// ParseFault parses a fault in the form that the control API, the command line and
// [Fault.String] use, such as "transaction-fails", "result-late=10m" or
// "lost-answer=validate". [FaultForms] lists all forms.
func ParseFault(text string) (Fault, error) {
	f, err := faultForms.Parse(text)
	return Fault{fault: f}, err
}

func plain(make func() Fault, says string) fault.Form {
	return form(make(), "", says, func(string) (Fault, error) { return make(), nil })
}

func counted(make func(int) Fault, says string) fault.Form {
	return form(make(1), "COUNT", says, func(argument string) (Fault, error) {
		n, err := strconv.Atoi(argument)
		if err != nil || n < 1 || n > 100 {
			return Fault{}, fmt.Errorf("COUNT must be a number from 1 to 100")
		}
		return make(n), nil
	})
}

func calling(make func(On) Fault, says string) fault.Form {
	return form(make(OnResult), "CALL", says, func(argument string) (Fault, error) {
		call, err := parseCall(argument)
		return make(call), err
	})
}

func late(argument string) (Fault, error) {
	d, err := fault.ParseDuration(argument)
	return ResultLate(d), err
}

func slow(argument string) (Fault, error) {
	name, lasts, _ := strings.Cut(argument, ":")
	call, err := parseCall(name)
	if err != nil {
		return Fault{}, err
	}
	d, err := fault.ParseDuration(lasts)
	return SlowAnswer(call, d), err
}

func transactionType(argument string) (Fault, error) {
	n, err := strconv.ParseUint(argument, 0, 64)
	if err != nil {
		return Fault{}, fmt.Errorf("NUMBER must be a 64-bit number such as 0x7")
	}
	return TransactionType(n), nil
}

func parseCall(text string) (On, error) {
	if !slices.Contains([]On{OnValidate, OnResult}, On(text)) {
		return "", fmt.Errorf("CALL must be validate or result")
	}
	return On(text), nil
}
