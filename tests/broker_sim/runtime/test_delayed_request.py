from broker_sim.errors import ErrorCode
from broker_sim.runtime.delayed_request import first_error


def test_first_error_is_the_first_code_that_is_an_error():
    codes = [ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT]
    assert first_error(codes) is ErrorCode.NOT_ENOUGH_REPLICAS


def test_first_error_of_no_errors_is_none():
    assert first_error([]) is ErrorCode.NONE
    assert first_error([ErrorCode.NONE]) is ErrorCode.NONE
