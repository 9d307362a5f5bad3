import pytest

from kassay.reference.coordinator.runtime import Clock, Timers


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def fired():
    return []


@pytest.fixture
def action(clock, fired):
    return lambda name: lambda: fired.append((clock.now, name))


def test_actions_scheduled_for_the_same_time_run_in_insertion_order(clock, fired, action):
    clock.after(10, action("first"))
    clock.timer(action("second")).start(10)
    clock.run(until=5)
    clock.after(5, action("third"))
    clock.run(until=20)
    assert fired == [(10, "first"), (10, "second"), (10, "third")]


def test_restarted_timer_runs_after_actions_already_scheduled_for_its_time(clock, fired, action):
    timer = clock.timer(action("postponed"))
    timer.start(5)
    timer.start(10)
    clock.after(10, action("action"))
    clock.run(until=20)
    assert fired == [(10, "action"), (10, "postponed")]


def test_action_without_delay_runs_at_the_current_time(clock, fired, action):
    clock.after(3, lambda: clock.after(0, action("no delay")))
    clock.run(until=3)
    assert fired == [(3, "no delay")]


@pytest.mark.parametrize(
    ("first", "until", "second", "expected"), [(10, 4, 20, 24), (50, 0, 10, 10), (10, 0, 10, 10)]
)
def test_restarted_timer_expires_once_at_the_new_time(
    clock, fired, action, first, until, second, expected
):
    timer = clock.timer(action("timer"))
    timer.start(first)
    clock.run(until=until)
    timer.start(second)
    clock.run(until=100)
    assert fired == [(expected, "timer")]


def test_cancelled_timer_does_not_expire_and_can_be_restarted(clock, fired, action):
    timer = clock.timer(action("timer"))
    timer.start(10)
    timer.cancel()
    clock.run(until=30)
    assert fired == []
    timer.start(10)
    clock.run(until=60)
    assert fired == [(40, "timer")]


def test_timer_can_restart_itself(clock, fired):
    timer = clock.timer(lambda: (fired.append(clock.now), timer.start(10)))
    timer.start(10)
    clock.run(until=35)
    assert fired == [10, 20, 30]


def test_a_cancelled_timer_does_not_run_until_it_is_started_again(clock, fired, action):
    timers = Timers(clock)
    for name in ("a", "b"):
        timers.start(name, 5, action(name))
    timers.cancel("a", "unknown")
    clock.run(until=10)
    timers.start("a", 5, action("new"))
    clock.run(until=20)
    assert fired == [(5, "b"), (15, "new")]
