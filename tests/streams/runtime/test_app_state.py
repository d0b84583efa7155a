"""The states of an application, as several threads change them."""

import threading

from broker.clock import SystemClock
from streams.runtime.app_state import AppState, StateMachine


def test_a_state_is_chosen_while_no_other_thread_can_change_it() -> None:
    states = StateMachine(SystemClock())
    states.enter(AppState.REBALANCING)
    seen: list[AppState] = []
    closing = threading.Thread(target=states.enter, args=(AppState.PENDING_SHUTDOWN,))

    def look() -> AppState:
        closing.start()
        closing.join(0.05)  # it must wait for us; if it does not, it is over by then
        seen.append(states.state)
        return AppState.RUNNING

    assert states.choose(look)
    closing.join()
    assert seen == [AppState.REBALANCING]
    assert states.state is AppState.PENDING_SHUTDOWN


def test_changes_are_told_in_their_order_whoever_makes_them() -> None:
    states = StateMachine(SystemClock())
    told: list[AppState] = []
    closing = threading.Thread(target=states.enter, args=(AppState.PENDING_SHUTDOWN,))

    def tell(new: AppState, old: AppState) -> None:
        if new is AppState.REBALANCING:
            closing.start()
            closing.join()  # it does not wait for us, or a listener could not close what it hears
        told.append(new)

    states.listen(tell)
    states.enter(AppState.REBALANCING)
    assert told == [AppState.REBALANCING, AppState.PENDING_SHUTDOWN]


def test_no_state_need_be_chosen() -> None:
    states = StateMachine(SystemClock())
    assert not states.choose(lambda: None)
    assert states.state is AppState.CREATED
