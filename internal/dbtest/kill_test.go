package dbtest

const envServe = "RAMP_TEST_SERVE"

func serve() {}
